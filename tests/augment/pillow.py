"""The slow twins: every augmentation with Pillow and numpy, one image at a time."""

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps
from sklearn.datasets import load_sample_images
from torch import Tensor

from debiaspl.augment import OPERATIONS, Crops, Draws

Pixels = NDArray[np.uint8]

PHOTOS = load_sample_images().images


def photos(count: int, height: int = 32, width: int = 32, channels: int = 3) -> Tensor:
    """Patches of two real photographs, (N, C, H, W); grey ones as Pillow makes them grey."""
    tiles = []
    for number in range(count):
        photo = PHOTOS[number % 2]
        top = 61 * number % (photo.shape[0] - height)
        left = 97 * number % (photo.shape[1] - width)
        tile = Image.fromarray(photo[top : top + height, left : left + width])
        tiles.append(from_pillow(tile if channels == 3 else tile.convert("L")))
    return torch.stack(tiles)


def to_pillow(image: Tensor) -> Image.Image:
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def from_pillow(image: Image.Image) -> Tensor:
    array = np.array(image)
    return torch.from_numpy(array[..., None] if array.ndim == 2 else array).permute(2, 0, 1).contiguous()


def affine(image: Image.Image, *coefficients: float) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, coefficients)


TWINS = {
    "identity": lambda image, value: image.copy(),
    "autocontrast": lambda image, value: ImageOps.autocontrast(image),
    "brightness": lambda image, value: ImageEnhance.Brightness(image).enhance(value),
    "color": lambda image, value: ImageEnhance.Color(image).enhance(value),
    "contrast": lambda image, value: ImageEnhance.Contrast(image).enhance(value),
    "equalize": lambda image, value: ImageOps.equalize(image),
    "posterize": lambda image, value: ImageOps.posterize(image, int(value)),
    "rotate": lambda image, value: image.rotate(value),
    "sharpness": lambda image, value: ImageEnhance.Sharpness(image).enhance(value),
    "shear_x": lambda image, value: affine(image, 1, value, 0, 0, 1, 0),
    "shear_y": lambda image, value: affine(image, 1, 0, 0, value, 1, 0),
    "solarize": lambda image, value: ImageOps.solarize(image, value),
    "translate_x": lambda image, value: affine(image, 1, 0, value, 0, 1, 0),
    "translate_y": lambda image, value: affine(image, 1, 0, 0, 0, 1, value),
}


def slow_operation(name: str, images: Tensor, values: list[float]) -> Tensor:
    pairs = zip(images, values, strict=True)
    return torch.stack([from_pillow(TWINS[name](to_pillow(image), value)) for image, value in pairs])


def slow_draws(images: Tensor, draws: Draws) -> Tensor:
    """RandAugment with what was drawn, replayed."""
    return torch.stack([_replay(image, draws, place) for place, image in enumerate(images)])


def _replay(tensor: Tensor, draws: Draws, place: int) -> Tensor:
    image = to_pillow(tensor)
    for codes, values in zip(draws.operation, draws.value, strict=True):
        image = TWINS[OPERATIONS[int(codes[place])]](image, float(values[place]))
    (top, bottom), (left, right) = draws.box[:, :, place].tolist()
    image.paste(127 if image.mode == "L" else (127, 127, 127), (left, top, right, bottom))
    return from_pillow(image)


def slow_crops(images: Tensor, crops: Crops, borders: tuple[int, int]) -> Tensor:
    """Weak with what was drawn, replayed on padded copies; `borders` are those of height and width."""
    height, width = images.shape[2:]
    outputs = []
    for image, flip, top, left in zip(images.numpy(), crops.flip, crops.top, crops.left, strict=True):
        flipped = image[:, :, ::-1] if flip else image
        padded = np.pad(flipped, ((0, 0), (borders[0],) * 2, (borders[1],) * 2), mode="reflect")
        outputs.append(padded[:, int(top) : int(top) + height, int(left) : int(left) + width])
    return torch.from_numpy(np.stack(outputs))
