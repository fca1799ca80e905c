"""An encoder for students, which needs transformers."""

import pytest


@pytest.fixture
def encoder(tmp_path):
    """The folder of a tiny ResNet."""
    pytest.importorskip("transformers", reason="students need an encoder")
    from tests.encoders.tiny import save

    save("resnet", tmp_path / "encoder")
    return str(tmp_path / "encoder")
