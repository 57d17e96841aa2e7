"""Makes a corpus of images in a directory, with `manifest.json`: what filectx has to do with each of them.

    /usr/bin/python3 corpus.py DIRECTORY        needs python3-pil

A manifest entry: `name`, `expect` and, where it matters, `same`, `format`, `frames`, `compare`.
  expect   "image"   it is shown
           "either"  it is damaged: shown, or refused as an image
           "text"    it is a text, whatever its name says
           a code    it is refused with this code
  same     whether the file's own bytes come
  format   what comes
  compare  whether Pillow sees the same picture in the source (not for what it reads in another way)

The pictures are small, except where size is the point. Damage is made by hand and by a fixed seed.
"""

import io
import json
import pathlib
import random
import struct
import sys
import zlib

from PIL import Image, ImageCms, ImageDraw, PngImagePlugin

OUT = pathlib.Path(sys.argv[1])
MANIFEST = []


def put(name, data, expect="image", **more):
    (OUT / name).write_bytes(data)
    MANIFEST.append({"name": name, "expect": expect, **more})


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def scene(size=(90, 60), mode="RGB"):
    """A red block top left, a blue one bottom right, a soft ground: what is turned or swapped shows."""
    width, height = size
    ground = Image.linear_gradient("L").resize(size)
    image = Image.merge("RGB", (ground, ground.point(lambda v: 255 - v // 2), ground.rotate(180)))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width // 3, height // 3), fill=(220, 30, 30))
    draw.rectangle((width * 2 // 3, height * 2 // 3, width, height), fill=(30, 30, 220))
    if "A" in mode:
        alpha = Image.new("L", size, 255)
        ImageDraw.Draw(alpha).ellipse((width // 3, height // 3, width * 2 // 3, height * 2 // 3), fill=90)
        image.putalpha(alpha)
    return image.convert(mode)


def noise(size, channels=3, seed=1):
    kind = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels]
    return Image.frombytes(kind, size, random.Random(seed).randbytes(size[0] * size[1] * channels))


# --- PNG ---------------------------------------------------------------------------------------------------------


def chunk(name, body, crc=None):
    sum_ = zlib.crc32(name + body) if crc is None else crc
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", sum_)


SIGNATURE = b"\x89PNG\r\n\x1a\n"


def ihdr(width, height, depth, colour, interlaced=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def packed(samples, depth):
    if depth == 16:
        return b"".join(struct.pack(">H", sample) for sample in samples)
    bits = "".join(format(sample, f"0{depth}b") for sample in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(width, height, depth, colour, sample, before=(), interlaced=0, after=()):
    """A PNG of `sample(x, y)`, which gives a tuple."""
    rows = b""
    for left, top, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        columns = range(left, width, dx)
        for y in range(top, height, dy):
            if columns:
                rows += b"\0" + packed([s for x in columns for s in sample(x, y)], depth)
    parts = [ihdr(width, height, depth, colour, interlaced), *before, chunk(b"IDAT", zlib.compress(rows)), *after]
    return SIGNATURE + b"".join(parts) + chunk(b"IEND", b"")


def pngs():
    for depth in (1, 2, 4, 8, 16):
        top = (1 << depth) - 1
        for interlaced in (0, 1):
            grey = png(33, 21, depth, 0, lambda x, y: ((x * top // 32),), interlaced=interlaced)
            put(f"png-grey{depth}-{interlaced}.png", grey, format="png", same=depth == 8, compare=depth < 16)
            if depth < 16:
                count = min(1 << depth, 200)
                palette = chunk(b"PLTE", bytes(v for i in range(count) for v in (i * 255 // (count - 1), 255 - i, 90)))
                trns = chunk(b"tRNS", bytes([0, 120]))
                place = lambda x, y, count=count: ((x + y) % count,)
                put(f"png-palette{depth}-{interlaced}.png", png(33, 21, depth, 3, place, [palette], interlaced), same=True)
                put(f"png-palette-trns{depth}-{interlaced}.png", png(33, 21, depth, 3, place, [palette, trns], interlaced), same=True)
    for depth in (8, 16):
        top = (1 << depth) - 1
        for colour, channels in ((2, 3), (4, 2), (6, 4)):
            sample = lambda x, y, top=top, n=channels: tuple(top * v // 64 for v in (x, y, 64 - x, 64 - y)[:n])
            for interlaced in (0, 1):
                data = png(33, 21, depth, colour, sample, interlaced=interlaced)
                put(f"png-{colour}-{depth}-{interlaced}.png", data, format="png", same=depth == 8, compare=depth == 8 or channels != 2)
    put("png-grey-trns.png", png(9, 9, 8, 0, lambda x, y: (x * 20,), [chunk(b"tRNS", b"\0\x28")]), same=True)
    put("png-rgb-trns.png", png(9, 9, 8, 2, lambda x, y: (x * 20, 0, 0), [chunk(b"tRNS", b"\0\x28\0\0\0\0")]), same=True)
    put("png-grey16-trns.png", png(9, 9, 16, 0, lambda x, y: (x * 5000,), [chunk(b"tRNS", b"\x13\x88")]), same=False, compare=False)
    image = scene()
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "made by hand")
    put("png-text.png", saved(image, "PNG", pnginfo=text), same=False)
    text.add_text("Long", "x" * 3_000_000, zip=True)
    put("png-ztxt-bomb.png", saved(image, "PNG", pnginfo=text), same=False, compare=False)
    text = PngImagePlugin.PngInfo()
    text.add_text("Long", "x" * 9_000_000)
    put("png-9mb-of-text.png", saved(image, "PNG", pnginfo=text), same=False, compare=False)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    put("png-icc.png", saved(image, "PNG", icc_profile=profile), same=False)
    put("png-icc-grey.png", saved(image.convert("L"), "PNG", icc_profile=profile), same=False)
    put("png-icc-garbage.png", saved(image, "PNG", icc_profile=b"no profile" * 20), same=False)
    put("png-icc-short.png", saved(image, "PNG", icc_profile=profile[:200]), same=False)
    bomb = b"name\0\0" + zlib.compress(b"\0" * 64_000_000, 9)
    put("png-icc-bomb.png", png(9, 9, 8, 2, lambda x, y: (x, y, 0), [chunk(b"iCCP", bomb)]), same=False, compare=False)
    for turn in (1, 3, 6, 8, 99):
        exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + struct.pack(">HH", turn, 0) + b"\0\0\0\0"
        put(f"png-exif{turn}.png", saved(scene(), "PNG", exif=exif), same=False)
    frames = [Image.new("RGBA", (20, 20), colour) for colour in ("red", "green", "blue")]
    put("png-animated.png", saved(frames[0], "PNG", save_all=True, append_images=frames[1:]), same=False, frames=3)
    clear = [Image.new("RGBA", (20, 20), (0, 0, 0, 0)), frames[1]]
    put("png-animated-clear-first.png", saved(clear[0], "PNG", save_all=True, append_images=clear[1:]), frames=2, compare=False)
    put("png-alpha.png", saved(scene(mode="RGBA"), "PNG"), same=True)
    put("png-all-clear.png", saved(Image.new("RGBA", (30, 20), (9, 9, 9, 0)), "PNG"), same=True)
    hidden = Image.new("RGBA", (300, 300), (0, 255, 0, 0))
    ImageDraw.Draw(hidden).ellipse((60, 60, 240, 240), fill=(255, 0, 0, 255))
    put("png-hidden-green.png", saved(hidden, "PNG"))
    put("png-1x1.png", saved(Image.new("RGB", (1, 1), "red"), "PNG"), same=True)
    put("png-20000x1.png", saved(Image.new("L", (20000, 1), 77), "PNG"))
    put("png-1x20000.png", saved(Image.new("L", (1, 20000), 77), "PNG"))
    put("png-9000x3.png", saved(Image.new("RGB", (9000, 3), "teal"), "PNG"))
    put("png-1568.png", saved(Image.new("RGB", (1568, 100), "teal"), "PNG"), same=True)
    put("png-1569.png", saved(Image.new("RGB", (1569, 100), "teal"), "PNG"))
    put("png-screenshot.png", saved(scene((1800, 1000)), "PNG"))
    put("png-noise.png", saved(noise((900, 700)), "PNG"), same=True)
    put("png-noise-alpha.png", saved(noise((1200, 900), 4), "PNG"), compare=False)
    whole = saved(scene(mode="RGBA"), "PNG")
    put("png-trailing.png", whole + b"trailing junk" * 9, same=False)
    put("png-renamed.jpg", whole, same=True)
    put("png-no-name", whole, same=True)
    put("png-as-text.txt", whole, same=True)
    put("png-as-mode.png", whole.replace(b"\r\n", b"\n"), "image_undecodable")
    for percent in (5, 30, 60, 90, 99):
        put(f"png-cut{percent}.png", whole[: len(whole) * percent // 100], "either")
    put("png-signature.png", SIGNATURE, "image_undecodable")
    put("png-only-header.png", SIGNATURE + ihdr(9, 9, 8, 2), "image_undecodable")
    put("png-no-idat.png", SIGNATURE + ihdr(9, 9, 8, 2) + chunk(b"IEND", b""), "image_undecodable")
    put("png-empty-idat.png", SIGNATURE + ihdr(9, 9, 8, 2) + chunk(b"IDAT", b"") + chunk(b"IEND", b""), "image_undecodable")
    put("png-no-palette.png", png(9, 9, 8, 3, lambda x, y: (0,)), "image_undecodable")
    put("png-place-beyond-palette.png", png(9, 9, 8, 3, lambda x, y: (x * 20,), [chunk(b"PLTE", bytes(6))]), "either")
    put("png-zero-width.png", SIGNATURE + ihdr(0, 9, 8, 2) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""), "image_undecodable")
    put("png-bad-crc-header.png", whole.replace(whole[29:33], b"abcd", 1), "either")
    at = whole.index(b"IDAT")
    put("png-bad-crc-idat.png", whole[:-20] + b"abcd" + whole[-16:], "either")
    put("png-bad-crc-text.png", SIGNATURE + ihdr(1, 1, 8, 0) + chunk(b"tEXt", b"a\0b", 7) + chunk(b"IDAT", zlib.compress(b"\0\x60")) + chunk(b"IEND", b""), same=False, compare=False)
    put("png-bad-crc-trns.png", png(9, 9, 8, 0, lambda x, y: (x * 20,), [chunk(b"tRNS", b"\0\x28", 7)]), "either", same=False)
    put("png-wrong-adler.png", SIGNATURE + ihdr(1, 1, 8, 0) + chunk(b"IDAT", zlib.compress(b"\0\x60")[:-1] + b"x") + chunk(b"IEND", b""), "either", same=False)
    put("png-no-iend.png", whole[:-12], "either", same=False)
    put("png-bad-filter.png", SIGNATURE + ihdr(9, 9, 8, 0) + chunk(b"IDAT", zlib.compress((b"\x07" + bytes(9)) * 9)) + chunk(b"IEND", b""), "either", same=False)
    put("png-too-many-rows.png", SIGNATURE + ihdr(9, 9, 8, 0) + chunk(b"IDAT", zlib.compress(bytes(10 * 900))) + chunk(b"IEND", b""), "either")
    put("png-too-few-rows.png", SIGNATURE + ihdr(9, 90, 8, 0) + chunk(b"IDAT", zlib.compress(bytes(10 * 9))) + chunk(b"IEND", b""), "either", same=False)
    put("png-wrong-depth.png", SIGNATURE + ihdr(9, 9, 3, 0) + chunk(b"IDAT", zlib.compress(bytes(90))) + chunk(b"IEND", b""), "image_undecodable")
    put("png-two-headers.png", SIGNATURE + ihdr(9, 9, 8, 0) + ihdr(900, 900, 8, 0) + whole[33:], "either", same=False)
    put("png-critical-unknown.png", png(9, 9, 8, 0, lambda x, y: (x,), [chunk(b"ABCD", b"?")]), "either", same=False)
    for side in (60_000, 2**31 - 1):
        put(f"png-claims-{side}.png", SIGNATURE + ihdr(side, side, 8, 6) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b""), "image_too_large")
    row = zlib.compressobj(9)
    real = b"".join(row.compress(bytes(1251)) for _ in range(10_000)) + row.flush()
    put("png-bomb-real.png", SIGNATURE + ihdr(10_000, 10_000, 1, 0) + chunk(b"IDAT", real) + chunk(b"IEND", b""), compare=False)
    row = zlib.compressobj(9)
    real = b"".join(row.compress(bytes(2502)) for _ in range(20_000)) + row.flush()
    put("png-bomb-beyond.png", SIGNATURE + ihdr(20_000, 20_000, 1, 0) + chunk(b"IDAT", real) + chunk(b"IEND", b""), "image_too_large")
    flipped(whole, "png", "png", 8, 12)


def flipped(whole, name, kind, behind, count):
    chance = random.Random(len(whole))
    for index in range(count):
        data = bytearray(whole)
        for _ in range(1 + index % 3):
            data[chance.randrange(behind, len(data))] = chance.randrange(256)
        put(f"{name}-flipped{index}.{kind}", bytes(data), "either")


# --- JPEG --------------------------------------------------------------------------------------------------------


def exif(turn, endian=">"):
    mark = b"MM" if endian == ">" else b"II"
    return b"Exif\0\0" + mark + struct.pack(endian + "HIHHHIHHI", 42, 8, 1, 0x112, 3, 1, turn, 0, 0)


def segment(marker, body):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body


def jpegs():
    image = scene()
    for name, options in {
        "444": {"subsampling": 0},
        "422": {"subsampling": 1},
        "420": {"subsampling": 2},
        "progressive": {"progressive": True},
        "q5": {"quality": 5},
        "q100": {"quality": 100},
        "optimised": {"optimize": True},
    }.items():
        put(f"jpeg-{name}.jpg", saved(image, "JPEG", **options), same=True, format="jpeg")
        put(f"jpeg-{name}-large.jpg", saved(scene((1700, 900)), "JPEG", **options), format="jpeg")
    put("jpeg-grey.jpg", saved(image.convert("L"), "JPEG"), same=True)
    put("jpeg-grey-progressive.jpg", saved(scene((2000, 700)).convert("L"), "JPEG", progressive=True))
    put("jpeg-cmyk.jpg", saved(image.convert("CMYK"), "JPEG"), same=False, format="jpeg")
    put("jpeg-cmyk-large.jpg", saved(scene((1700, 900)).convert("CMYK"), "JPEG"), format="jpeg")
    put("jpeg-cmyk-progressive.jpg", saved(image.convert("CMYK"), "JPEG", progressive=True), format="jpeg")
    for thin in ((1700, 1), (1, 1700), (1700, 9)):
        put(f"jpeg-cmyk-{thin[0]}x{thin[1]}.jpg", saved(scene(thin).convert("CMYK"), "JPEG"), compare=False)
    inks = saved(image.convert("CMYK"), "JPEG")
    at = inks.find(b"Adobe")
    if at > 0:
        ycck = bytearray(inks)
        ycck[at + 11] = 2
        put("jpeg-ycck.jpg", bytes(ycck), compare=False)
    put("jpeg-cmyk-no-adobe.jpg", without(inks, 0xEE), compare=False)
    for turn in [*range(1, 9), 99]:
        put(f"jpeg-exif{turn}.jpg", saved(image, "JPEG", exif=exif(turn)), same=False)
    put("jpeg-exif6-large.jpg", saved(scene((3000, 900)), "JPEG", exif=exif(6)))
    put("jpeg-exif-little.jpg", saved(image, "JPEG", exif=exif(8, "<")), same=False)
    plain = saved(image, "JPEG", quality=90)
    hostile = {
        "short": b"Exif\0\0MM\0*",
        "offset": b"Exif\0\0MM\0*\xff\xff\xff\xf0",
        "loop": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\x08",
        "count": b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0" * 300,
        "large": b"Exif\0\0" + bytes(65_000),
    }
    for name, body in hostile.items():
        put(f"jpeg-exif-{name}.jpg", plain[:2] + segment(0xE1, body) + plain[2:], same=False, compare=False)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    put("jpeg-icc.jpg", saved(image, "JPEG", icc_profile=profile), same=False)
    put("jpeg-icc-grey.jpg", saved(image.convert("L"), "JPEG", icc_profile=profile), same=False)
    put("jpeg-icc-cmyk.jpg", saved(image.convert("CMYK"), "JPEG", icc_profile=profile), same=False)
    put("jpeg-icc-garbage.jpg", saved(image, "JPEG", icc_profile=b"\xff" * 70_000), same=False)
    lying = bytearray(profile)
    lying[128:132] = b"\xff\xff\xff\xff"
    put("jpeg-icc-lying.jpg", saved(image, "JPEG", icc_profile=bytes(lying)), same=False)
    put("jpeg-comment.jpg", saved(image, "JPEG", comment=b"hello"), same=False)
    put("jpeg-xmp.jpg", plain[:2] + segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>") + plain[2:], same=False)
    put("jpeg-iptc.jpg", plain[:2] + segment(0xED, b"Photoshop 3.0\0" + bytes(40)) + plain[2:], same=False)
    put("jpeg-trailing.jpg", plain + b"motion photo" * 99, same=False)
    put("jpeg-fill-bytes.jpg", plain[:2] + b"\xff" * 9 + plain[2:])
    put("jpeg-no-eoi.jpg", plain[:-2], "either", same=False)
    put("jpeg-renamed.png", plain, same=True)
    put("jpeg-no-name", plain, same=True)
    put("jpeg-1x1.jpg", saved(Image.new("RGB", (1, 1), "red"), "JPEG"), same=True)
    put("jpeg-7x5.jpg", saved(scene((7, 5)), "JPEG"), same=True)
    put("jpeg-9000x3.jpg", saved(Image.new("RGB", (9000, 3), "teal"), "JPEG"))
    put("jpeg-1x9000.jpg", saved(Image.new("RGB", (1, 9000), "teal"), "JPEG"))
    put("jpeg-photo.jpg", saved(noise((100, 75)).resize((3760, 2820), Image.BICUBIC), "JPEG", quality=88))
    put("jpeg-photo-progressive.jpg", saved(noise((200, 150)).resize((2400, 1800), Image.BICUBIC), "JPEG", progressive=True))
    for percent in (3, 20, 50, 80, 99):
        put(f"jpeg-cut{percent}.jpg", plain[: len(plain) * percent // 100], "either")
    put("jpeg-signature.jpg", b"\xff\xd8\xff", "image_undecodable")
    put("jpeg-soi-eoi.jpg", b"\xff\xd8\xff\xd9", "image_undecodable")
    frame = plain.index(b"\xff\xc0")
    sizes = plain[: frame + 5]
    rest = plain[frame + 9 :]
    put("jpeg-claims-65500.jpg", sizes + struct.pack(">HH", 65_500, 65_500) + rest, "image_too_large")
    put("jpeg-claims-9000.jpg", sizes + struct.pack(">HH", 9_000, 9_000) + rest, "either")
    put("jpeg-claims-less.jpg", sizes + struct.pack(">HH", 8, 8) + rest, "either")
    put("jpeg-zero-height.jpg", sizes + struct.pack(">HH", 0, 90) + rest, "image_undecodable")
    put("jpeg-12-bits.jpg", plain[: frame + 4] + b"\x0c" + plain[frame + 5 :], "image_unsupported")
    put("jpeg-lossless.jpg", plain[: frame + 1] + b"\xc3" + plain[frame + 2 :], "image_unsupported")
    put("jpeg-arithmetic.jpg", plain[: frame + 1] + b"\xc9" + plain[frame + 2 :], "image_unsupported")
    progressive = saved(image, "JPEG", progressive=True)
    scan = progressive.index(b"\xff\xda")
    put("jpeg-many-scans.jpg", progressive[:-2] + (progressive[scan : scan + 40]) * 2_000 + b"\xff\xd9", "either")
    flipped(plain, "jpeg", "jpg", 20, 12)


def without(data, marker):
    at = data.find(b"\xff" + bytes([marker]))
    return data if at < 0 else data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2 : at + 4])[0] :]


# --- GIF ---------------------------------------------------------------------------------------------------------


def gif(screen, frame, before=b"", after=b";", data=b"\x02\x02\x44\x01\0"):
    left, top, width, height = frame
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + b"\x20\x20\x20\xff\xff\xff"
    return head + before + b"," + struct.pack("<HHHHB", left, top, width, height, 0) + data + after


def lzw(count):
    """So many pixels of place 1, without compression: a clear code before every second pixel keeps codes at three bits."""
    codes = []
    for _ in range(count):
        codes += [4, 1]
    codes.append(5)
    bits = "".join(format(code, "03b")[::-1] for code in codes)
    bits += "0" * (-len(bits) % 8)
    raw = bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))
    blocks = b"".join(bytes([len(raw[at : at + 255])]) + raw[at : at + 255] for at in range(0, len(raw), 255))
    return b"\x02" + blocks + b"\0"


def gifs():
    image = scene().quantize(64)
    plain = saved(image, "GIF")
    put("gif.gif", plain, same=True, format="gif")
    put("gif-interlaced.gif", saved(image, "GIF", interlace=1), same=True)
    put("gif-not-interlaced.gif", saved(image, "GIF", interlace=0), same=True)
    put("gif-transparent.gif", saved(image, "GIF", transparency=3), same=True)
    put("gif-comment.gif", saved(image, "GIF", comment=b"hello"), same=False)
    put("gif-1x1.gif", saved(Image.new("P", (1, 1)), "GIF"), same=True)
    put("gif-large.gif", saved(scene((1700, 900)).quantize(200), "GIF"))
    frames = [Image.new("P", (30, 20), at) for at in range(5)]
    for at, frame in enumerate(frames):
        frame.putpalette([at * 50, 200 - at * 40, 90] * 256)
        frame.putpixel((at, at), 255)
    put("gif-animated.gif", saved(frames[0], "GIF", save_all=True, append_images=frames[1:]), frames=5, same=False, compare=False)
    clear = Image.new("P", (30, 20), 0)
    put("gif-clear-first.gif", saved(clear, "GIF", save_all=True, append_images=frames[1:3], transparency=0, disposal=2), compare=False)
    put("gif-trailing.gif", plain + b"junk", same=False)
    put("gif-renamed.png", plain, same=True)
    put("gif-frame-inside.gif", gif((9, 9), (2, 2, 4, 4), data=lzw(16)), same=True, compare=False)
    put("gif-frame-larger.gif", gif((4, 4), (0, 0, 9, 7), data=lzw(63)), same=False, compare=False)
    put("gif-frame-outside.gif", gif((4, 4), (6, 5, 3, 3), data=lzw(9)), same=False, compare=False)
    put("gif-frame-over-edge.gif", gif((8, 8), (5, 5, 6, 6), data=lzw(36)), same=False, compare=False)
    put("gif-frame-far-outside.gif", gif((10, 10), (9_000, 9_000, 60_000, 60_000)), "image_too_large")
    put("gif-frame-huge.gif", gif((10, 10), (0, 0, 60_000, 60_000)), "image_too_large")
    put("gif-screen-huge.gif", gif((65_535, 65_535), (0, 0, 1, 1)), "image_too_large")
    put("gif-screen-9000.gif", gif((9_000, 9_000), (0, 0, 2, 2), data=lzw(4)), "either")
    put("gif-zero-width.gif", gif((0, 9), (0, 0, 0, 9)), "image_undecodable")
    put("gif-zero-frame.gif", gif((9, 9), (0, 0, 0, 0)), "either")
    put("gif-no-frame.gif", plain[:13] + b";", "image_undecodable")
    put("gif-no-trailer.gif", plain[:-1], "either", same=False)
    put("gif-bad-code.gif", gif((9, 9), (0, 0, 9, 9), data=b"\x02\x04\xff\xff\xff\xff\0"), "either", same=False)
    put("gif-too-few-pixels.gif", gif((9, 9), (0, 0, 9, 9), data=lzw(5)), "either")
    put("gif-too-many-pixels.gif", gif((2, 2), (0, 0, 2, 2), data=lzw(500)), "either")
    put("gif-text-block.gif", gif((9, 9), (0, 0, 9, 9), before=b"!\x01\x0c" + bytes(12) + b"\x03abc\0", data=lzw(81)), same=False, compare=False)
    put("gif-no-colours.gif", b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + b"," + struct.pack("<HHHHB", 0, 0, 4, 4, 0) + lzw(16) + b";", "either")
    put("gif87.gif", b"GIF87a" + plain[6:], same=True)
    for percent in (10, 50, 95):
        put(f"gif-cut{percent}.gif", plain[: len(plain) * percent // 100], "either")
    put("gif-signature.gif", b"GIF89a\x01\0\x01\0\0", "either")
    flipped(plain, "gif", "gif", 10, 10)


# --- WebP --------------------------------------------------------------------------------------------------------


def webps():
    image = scene()
    clear = scene(mode="RGBA")
    lossy, lossless = saved(image, "WEBP"), saved(image, "WEBP", lossless=True)
    put("webp-lossy.webp", lossy, same=True, format="webp")
    put("webp-lossless.webp", lossless, same=True, format="webp")
    put("webp-alpha.webp", saved(clear, "WEBP"), same=True)
    put("webp-alpha-lossless.webp", saved(clear, "WEBP", lossless=True), same=True)
    put("webp-large.webp", saved(scene((1901, 1003)), "WEBP", method=0), format="webp")
    put("webp-large-alpha.webp", saved(scene((1701, 901), "RGBA"), "WEBP", method=0), format="webp")
    put("webp-large-lossless.webp", saved(scene((1701, 901)), "WEBP", lossless=True, method=0, quality=0), format="webp")
    put("webp-1x1.webp", saved(Image.new("RGB", (1, 1), "red"), "WEBP"), same=True)
    put("webp-16383x1.webp", saved(Image.new("RGB", (16383, 1), "teal"), "WEBP", method=0))
    for turn in (1, 6, 8):
        put(f"webp-exif{turn}.webp", saved(image, "WEBP", exif=exif(turn)), same=False)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    put("webp-icc.webp", saved(image, "WEBP", icc_profile=profile), same=False)
    put("webp-xmp.webp", saved(image, "WEBP", xmp=b"<x/>"), same=False)
    frames = [scene((30, 20), "RGBA").rotate(at * 30) for at in range(4)]
    put("webp-animated.webp", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]), frames=4, same=False, format="webp")
    put("webp-animated-lossless.webp", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True), frames=4, same=False)
    put("webp-trailing.webp", lossy + b"junk", same=False)
    put("webp-renamed.gif", lossy, same=True)
    longer = bytearray(lossy)
    longer[4:8] = struct.pack("<I", len(lossy) + 4_000)
    put("webp-claims-more-bytes.webp", bytes(longer), "either", same=False)
    wide = bytearray(lossy)
    at = wide.index(b"\x9d\x01\x2a") + 3
    wide[at : at + 4] = struct.pack("<HH", 16_383, 16_383)
    put("webp-claims-16383.webp", bytes(wide), "image_too_large")
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (99_999).to_bytes(3, "little") * 2
    body = b"WEBP" + canvas + lossy[12:]
    put("webp-canvas-lies.webp", b"RIFF" + struct.pack("<I", len(body)) + body, "image_too_large")
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (99).to_bytes(3, "little") * 2
    body = b"WEBP" + canvas + lossy[12:]
    put("webp-two-sizes.webp", b"RIFF" + struct.pack("<I", len(body)) + body, "either", same=False)
    for name, whole in (("lossy", lossy), ("lossless", lossless)):
        for percent in (10, 50, 95):
            put(f"webp-{name}-cut{percent}.webp", whole[: len(whole) * percent // 100], "either")
    put("webp-signature.webp", b"RIFF\x04\0\0\0WEBP", "binary")
    flipped(lossy, "webp", "webp", 12, 8)
    flipped(saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]), "webp-animated", "webp", 12, 5)


# --- what becomes PNG --------------------------------------------------------------------------------------------


def bmp(width, height, bits, body, compression=0, palette=b"", masks=b"", header=40):
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(body), 2835, 2835, len(palette) // 4, 0)
    at = 14 + len(info) + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at) + info + masks + palette + body


def bmps():
    image = scene((30, 20))
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        put(f"bmp-{mode}.bmp", saved(scene((31, 20), "RGBA").convert(mode) if mode != "P" else image.quantize(16), "BMP"), format="png", compare=mode != "RGBA")
    rows = [b"".join(bytes((x * 8, y * 12, 90)) for x in range(30)) + b"\0\0" for y in range(20)]
    put("bmp-bottom-up.bmp", bmp(30, 20, 24, b"".join(reversed(rows))))
    put("bmp-top-down.bmp", bmp(30, -20, 24, b"".join(rows)))
    palette = b"".join(bytes((at * 16, 90, 255 - at * 16, 0)) for at in range(16))
    rle8 = b"".join(bytes((10, at % 16, 20, (at + 5) % 16, 0, 0)) for at in range(20)) + b"\0\1"
    put("bmp-rle8.bmp", bmp(30, 20, 8, rle8, 1, palette), compare=False)
    absolute = b"".join(b"\0\x05" + bytes((1, 2, 3, 4, 5)) + b"\0" + bytes((25, 7)) + b"\0\0" for _ in range(20)) + b"\0\1"
    put("bmp-rle8-absolute.bmp", bmp(30, 20, 8, absolute, 1, palette), compare=False)
    rle4 = b"".join(bytes((30, 0x12, 0, 0)) for _ in range(20)) + b"\0\1"
    put("bmp-rle4.bmp", bmp(30, 20, 4, rle4, 2, palette), compare=False)
    put("bmp-rle8-delta-out.bmp", bmp(30, 20, 8, b"\0\x02\xff\xff" * 50 + b"\0\1", 1, palette), "either")
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    put("bmp-565.bmp", bmp(30, 20, 16, b"".join(struct.pack("<H", (x << 11) | (y << 5)) for y in range(20) for x in range(30)), 3, masks=masks), compare=False)
    masks = struct.pack("<III", 0xFF000000, 0x00FF0000, 0x0000FF00)
    put("bmp-32-masks.bmp", bmp(30, 20, 32, bytes(range(240)) * 10, 3, masks=masks), compare=False)
    put("bmp-555.bmp", bmp(30, 20, 16, bytes(range(240)) * 5), compare=False)
    put("bmp-odd-masks.bmp", bmp(30, 20, 32, bytes(2400), 3, masks=struct.pack("<III", 5, 5, 5)), "either")
    core = struct.pack("<IHHHH", 12, 30, 20, 1, 24)
    put("bmp-core.bmp", b"BM" + struct.pack("<IHHI", 26 + 1840, 0, 0, 26) + core + b"".join(rows), compare=False)
    put("bmp-cut.bmp", bmp(30, 20, 24, b"".join(rows))[:700], "either")
    put("bmp-claims.bmp", bmp(60_000, 60_000, 24, b"".join(rows)), "image_too_large")
    put("bmp-negative-min.bmp", bmp(30, -(2**31), 24, b"".join(rows)), "image_too_large")
    put("bmp-zero.bmp", bmp(0, 20, 24, b"".join(rows)), "image_undecodable")
    put("bmp-large.bmp", saved(scene((1700, 900)), "BMP"))
    flipped(bmp(30, 20, 8, rle8, 1, palette), "bmp-rle8", "bmp", 28, 6)


def tiffs():
    for mode in ("1", "L", "P", "LA", "RGB", "RGBA", "CMYK", "YCbCr"):
        image = scene((31, 21), "RGBA").convert("RGB").quantize(200) if mode == "P" else None
        image = image or (scene((31, 21), "RGBA").convert("LA") if mode == "LA" else scene((31, 21), "RGBA" if mode == "RGBA" else "RGB").convert(mode))
        for packing in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
            expect = "either" if mode == "YCbCr" else "image"
            put(f"tiff-{mode}-{packing}.tif", saved(image, "TIFF", compression=packing), expect, format="png")
    put("tiff-group4.tif", saved(scene((40, 30)).convert("1"), "TIFF", compression="group4"), "image")
    put("tiff-group3.tif", saved(scene((40, 30)).convert("1"), "TIFF", compression="group3"), "either")
    put("tiff-jpeg.tif", saved(scene((64, 48)), "TIFF", compression="jpeg"))
    put("tiff-jpeg-grey.tif", saved(scene((64, 48)).convert("L"), "TIFF", compression="jpeg"))
    put("tiff-16.tif", saved(Image.frombytes("I;16", (30, 20), bytes(range(240)) * 5), "TIFF"), compare=False)
    put("tiff-float.tif", saved(Image.new("F", (30, 20), 0.5), "TIFF"), "image", compare=False)
    put("tiff-int32.tif", saved(Image.new("I", (30, 20), 7), "TIFF"), "either", compare=False)
    pages = [scene((30, 20)).rotate(at * 40) for at in range(3)]
    put("tiff-pages.tif", saved(pages[0], "TIFF", save_all=True, append_images=pages[1:]), frames=3)
    put("tiff-turned.tif", saved(scene(), "TIFF", tiffinfo={274: 6}), compare=False)
    put("tiff-large.tif", saved(scene((1700, 900)), "TIFF", compression="tiff_lzw"))
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    put("tiff-icc.tif", saved(scene(), "TIFF", icc_profile=profile))
    put("tiff-palette4.tif", tiff(17, 9, [(258, 4), (262, 3)], bytes(range(9)) * 9, [v * 4000 for v in range(16)] * 3), compare=False)
    put("tiff-palette-missing.tif", tiff(17, 9, [(258, 8), (262, 3)], bytes(153)), "image_undecodable")
    put("tiff-white-is-zero.tif", tiff(16, 9, [(258, 1), (262, 0)], bytes(range(18))), compare=True)
    put("tiff-grey4.tif", tiff(16, 9, [(258, 4), (262, 1)], bytes(range(72))))
    put("tiff-grey2.tif", tiff(16, 9, [(258, 2), (262, 1)], bytes(range(36))))
    put("tiff-big-endian.tif", tiff(16, 9, [(258, 8), (262, 1)], bytes(range(144)), endian=">"))
    whole = saved(scene(), "TIFF")
    for percent in (3, 50, 95):
        put(f"tiff-cut{percent}.tif", whole[: len(whole) * percent // 100], "either")
    put("tiff-claims.tif", tiff(60_000, 60_000, [(258, 8), (262, 1)], bytes(99)), "image_too_large")
    put("tiff-no-rows.tif", tiff(16, 9, [(258, 8), (262, 1), (278, 0)], bytes(144)), "either")
    put("tiff-odd-depth.tif", tiff(16, 9, [(258, 13), (262, 1)], bytes(900)), "either")
    put("tiff-loop.tif", b"II*\0\x08\0\0\0\0\0\x08\0\0\0", "image_undecodable")
    put("tiff-nowhere.tif", b"II*\0\xff\xff\xff\x7f", "image_undecodable")
    flipped(whole, "tiff", "tif", 8, 5)
    flipped(tiff(16, 9, [(258, 8), (262, 1)], bytes(144)), "tiff-directory", "tif", 150, 8)


def tiff(width, height, entries, body, colours=None, endian="<"):
    """One strip, behind it the directory: what Pillow does not write."""
    fields = {256: (3, width), 257: (3, height), 259: (3, 1), 273: (4, 8), 277: (3, 1), 278: (3, height), 279: (4, len(body))}
    fields.update({tag: (3, value) for tag, value in entries})
    at = 8 + len(body)
    count = len(fields) + (colours is not None)
    behind = at + 2 + 12 * count + 4
    directory = b""
    if colours is not None:
        fields[320] = (None, behind)
    for tag, (kind, value) in sorted(fields.items()):
        if kind is None:
            directory += struct.pack(endian + "HHII", tag, 3, len(colours), value)
        elif kind == 3 and value < 65_536:
            directory += struct.pack(endian + "HHIHH", tag, 3, 1, value, 0)
        else:
            directory += struct.pack(endian + "HHII", tag, 4, 1, value)
    head = (b"II" if endian == "<" else b"MM") + struct.pack(endian + "HI", 42, at)
    tail = struct.pack(endian + f"{len(colours)}H", *colours) if colours else b""
    return head + body + struct.pack(endian + "H", count) + directory + bytes(4) + tail


def pnms():
    put("pnm-p4.pbm", b"P4\n9 3\n" + b"\xaa\x80" * 3, compare=True)
    put("pnm-p5.pgm", b"P5\n# made by hand\n9 3\n255\n" + bytes(range(0, 108, 4)), format="png")
    put("pnm-p5-7.pgm", b"P5\n9 3\n7\n" + bytes(at % 8 for at in range(27)))
    put("pnm-p5-16.pgm", b"P5\n9 3\n65535\n" + bytes(range(54)), compare=False)
    put("pnm-p6.ppm", b"P6\n9 3\n255\n" + bytes(range(81)))
    put("pnm-p6-16.ppm", b"P6\n9 3\n65535\n" + bytes(range(162)), compare=False)
    put("pnm-p7.pam", b"P7\nWIDTH 4\nHEIGHT 3\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" + bytes(range(100, 148)), compare=False)
    put("pnm-p7-grey.pam", b"P7\nWIDTH 4\nHEIGHT 3\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n" + bytes(range(200, 224)), compare=False)
    put("pnm-p2.pgm", b"P2\n3 2\n255\n0 50 100\n150 200 250\n", "text")
    put("pnm-p3.ppm", b"P3\n1 1\n255\n0 50 100\n", "text")
    put("pnm-large.ppm", saved(scene((1700, 900)), "PPM"))
    put("pnm-cut.ppm", b"P6\n9 3\n255\n" + bytes(range(40)), "either")
    put("pnm-claims.ppm", b"P6\n60000 60000\n255\n" + bytes(range(200)), "image_too_large")
    put("pnm-claims-more.ppm", b"P6\n99999999999 9\n255\n" + bytes(range(200)), "image_too_large")


def qoi(image):
    out = b"qoif" + struct.pack(">IIBB", *image.size, len(image.mode), 0)
    mark = b"\xfe" if image.mode == "RGB" else b"\xff"
    pixels = image.tobytes()
    step = len(image.mode)
    return out + b"".join(mark + pixels[at : at + step] for at in range(0, len(pixels), step)) + bytes(7) + b"\1"


def others():
    put("qoi-rgb.qoi", qoi(scene((30, 20))), format="png", compare=False)
    put("qoi-rgba.qoi", qoi(scene((30, 20), "RGBA")), format="png", compare=False)
    put("qoi-cut.qoi", qoi(scene((30, 20)))[:900], "either")
    put("qoi-claims.qoi", b"qoif" + struct.pack(">IIBB", 60_000, 60_000, 4, 0) + bytes(99), "image_too_large")
    run = b"qoif" + struct.pack(">IIBB", 60, 20, 3, 0) + b"\xfe\x10\x20\x30" + b"\xfd" * 19 + b"\xd4" + bytes(7) + b"\1"
    put("qoi-runs.qoi", run, compare=False)
    for mode in ("L", "LA", "P", "RGB", "RGBA"):
        image = scene((30, 20)).quantize(64) if mode == "P" else scene((30, 20), "RGBA").convert(mode)
        for packing in (None, "tga_rle"):
            put(f"tga-{mode}-{packing}.tga", saved(image, "TGA", compression=packing), format="png", compare=mode != "P")
    put("tga-top-down.tga", saved(scene((30, 20)), "TGA", orientation=1))
    whole = saved(scene((30, 20)), "TGA", compression="tga_rle")
    put("tga-cut.tga", whole[: len(whole) // 2], "either")
    put("tga-as.bin", saved(scene((30, 20)), "TGA"), "binary")
    put("tga-claims.tga", struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, 65_535, 65_535, 24, 0) + bytes(range(99)), "image_too_large")
    for sizes in ([(16, 16)], [(16, 16), (32, 32), (64, 64)], [(256, 256)]):
        put(f"ico-{len(sizes)}-{sizes[-1][0]}.ico", saved(scene((256, 256), "RGBA"), "ICO", sizes=sizes), format="png")
        put(f"ico-bmp-{len(sizes)}-{sizes[-1][0]}.ico", saved(scene((256, 256), "RGBA"), "ICO", sizes=sizes, bitmap_format="bmp"), format="png")
    icon = saved(scene((64, 64), "RGBA"), "ICO", sizes=[(32, 32)])
    put("ico-cut.ico", icon[: len(icon) // 2], "either")
    put("ico-lies.ico", icon[:6] + b"\xff\xff" + icon[8:], "either")
    inner = SIGNATURE + ihdr(60_000, 60_000, 8, 6) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    put("ico-bomb.ico", struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(inner), 22) + inner, "image_too_large")
    put("cursor.cur", b"\0\0\2\0" + icon[4:], "either")
    flipped(icon, "ico", "ico", 6, 5)


def no_images():
    put("page.png", b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n", "text")
    put("drawing.png", b"<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>\n", "text")
    put("lfs.png", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "text")
    put("empty.png", b"", "text")
    put("heic.jpg", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(99), "image_unsupported")
    put("avif.png", b"\0\0\0\x1cftypavif\0\0\0\0mif1avifmiaf" + bytes(99), "image_unsupported")
    put("psd.png", b"8BPS\0\1" + bytes(6) + b"\0\3\0\0\0\x09\0\0\0\x09\0\x08\0\3" + bytes(99), "image_unsupported")
    put("jxl.png", b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(99), "image_unsupported")
    put("zeros.jpg", bytes(5_000), "binary")
    put("noise.gif", random.Random(3).randbytes(5_000), "binary")


OUT.mkdir(parents=True, exist_ok=True)
for make in (pngs, jpegs, gifs, webps, bmps, tiffs, pnms, others, no_images):
    make()
names = [entry["name"] for entry in MANIFEST]
duplicates = {name for name in names if names.count(name) > 1}
(OUT / "manifest.json").write_text(json.dumps(MANIFEST, indent=1))
assert not duplicates, duplicates
