"""Holds answers against what was promised, with Pillow.

    /usr/bin/python3 check.py REPORT        needs python3-pil

REPORT is a JSON list. Of an answer with an image: `name`, `source` (its file), `answer` (a file with the bytes that came),
`image` (the contract's metadata), `mime_type`, `limits`, `expected` (the manifest's entry). Prints a line for each broken
promise and exits with 1 if there is one.
"""

import io
import json
import pathlib
import sys
import warnings

from PIL import Image, ImageChops, ImageOps, ImageStat

# What is decoded here was made for these tests; the largest source has 100 million pixels.
Image.MAX_IMAGE_PIXELS = None
warnings.simplefilter("ignore")

FORMATS = {"png": "PNG", "jpeg": "JPEG", "gif": "GIF", "webp": "WEBP"}
# Mean difference of a sample, of 255: scaling and lossy formats stay far below, another picture does not.
NEAR = 12


def whole(data):
    """The image, every frame of it decoded."""
    image = Image.open(io.BytesIO(data))
    image.load()
    for frame in range(getattr(image, "n_frames", 1)):
        image.seek(frame)
        image.load()
    image.seek(0)
    return image


def on_white(image, size):
    image = image.convert("RGBA")
    ground = Image.new("RGBA", image.size, "white")
    ground.alpha_composite(image)
    return ground.convert("RGB").resize(size, Image.LANCZOS)


def problems(entry):
    data = pathlib.Path(entry["answer"]).read_bytes()
    told, limits, expected = entry["image"], entry["limits"], entry["expected"]
    try:
        image = whole(data)
    except Exception as error:
        yield f"Pillow cannot open it: {error!r}"
        return
    if image.format != FORMATS.get(told["format"]):
        yield f"it is {image.format}, and {told['format']} was told"
    if entry["mime_type"] != f"image/{told['format']}":
        yield f"its type is told as {entry['mime_type']} and as {told['format']}"
    if image.size != (told["width"], told["height"]):
        yield f"it has {image.size}, and {told['width']} x {told['height']} was told"
    if getattr(image, "n_frames", 1) != 1:
        yield f"it has {image.n_frames} frames"
    if image.width * image.height > limits["max_pixels"] or max(image.size) > limits["max_side"]:
        yield f"{image.size} is over the limits {limits}"
    if len(data) > limits["max_bytes"]:
        yield f"{len(data)} bytes are over the limits {limits}"
    if image.width > told["source_width"] or image.height > told["source_height"]:
        yield "it is larger than its source"
    if abs(told["scale"] - image.width / told["source_width"]) > 1e-6:
        yield f"its scale is told as {told['scale']}"
    source = pathlib.Path(entry["source"]).read_bytes()
    if (source == data) == told["re_encoded"]:
        yield f"re_encoded is {told['re_encoded']}, which it is not"
    if told["re_encoded"] and set(image.info) & {"exif", "icc_profile", "comment", "xmp", "XML:com.adobe.xmp"}:
        yield f"it carries {sorted(image.info)}"
    if not limits["default"]:
        return
    if expected.get("same") is not None and expected["same"] != (source == data):
        yield f"byte for byte: {source == data}"
    if expected.get("format", told["format"]) != told["format"]:
        yield f"it came as {told['format']}"
    if expected.get("frames", told["frames"]) != told["frames"]:
        yield f"{told['frames']} frames were told"
    if expected["expect"] == "image" and expected.get("compare", True):
        original = ImageOps.exif_transpose(Image.open(io.BytesIO(source)))
        if original.size != (told["source_width"], told["source_height"]):
            yield f"its source has {original.size}, and {told['source_width']} x {told['source_height']} was told"
        pair = [on_white(picture, image.size) for picture in (original, image)]
        difference = max(ImageStat.Stat(ImageChops.difference(*pair)).mean)
        if difference > NEAR:
            yield f"it looks different: {difference:.1f}"


report = json.loads(pathlib.Path(sys.argv[1]).read_text())
found = [f"{entry['name']} ({entry['limits']['name']}): {problem}" for entry in report for problem in problems(entry)]
for line in found:
    print(line)
sys.exit(1 if found else 0)
