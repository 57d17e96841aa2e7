"""Makes the images of the benchmark in a directory: photo.jpg and photo.webp of 12 megapixels, screen.png of a 4K display.

    /usr/bin/python3 large.py DIRECTORY        needs python3-pil
"""

import pathlib
import random
import sys

from PIL import Image, ImageChops, ImageDraw

OUT = pathlib.Path(sys.argv[1])


def photo(size):
    """Soft shapes of many sizes with a little grain."""
    planes = []
    for seed in range(3):
        plane = Image.new("L", size, 128)
        for cell, weight in ((800, 0.5), (200, 0.3), (50, 0.15), (12, 0.06)):
            small = (size[0] // cell + 2, size[1] // cell + 2)
            noise = Image.frombytes("L", small, random.Random(seed * 99 + cell).randbytes(small[0] * small[1]))
            plane = Image.blend(plane, noise.resize(size, Image.BICUBIC), weight)
        grain = Image.effect_noise(size, 6)
        planes.append(ImageChops.add(plane, grain, 1, -128))
    return Image.merge("RGB", planes)


def screen(size):
    chance = random.Random(5)
    image = Image.new("RGB", size, (250, 250, 252))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 600, size[1]), fill=(33, 37, 43))
    draw.rectangle((0, 0, size[0], 80), fill=(60, 63, 70))
    words = ["fn", "let", "request", "=", "answer(", "&self", "{", "}", "Ok(())", "match", "limit", "=>", "//", "bytes"]
    for row in range(110, size[1], 26):
        draw.text((30, row), " ".join(chance.choices(words, k=6)), fill=(200, 205, 210))
        draw.text((650 + 24 * chance.randrange(5), row), " ".join(chance.choices(words, k=60)), fill=(40, 40, 60))
    return image


OUT.mkdir(parents=True, exist_ok=True)
picture = photo((4000, 3000))
picture.save(OUT / "photo.jpg", quality=90)
picture.save(OUT / "photo.webp", quality=85, method=2)
screen((3840, 2160)).save(OUT / "screen.png")
