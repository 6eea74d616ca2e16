import logging
import sys
from pathlib import Path

import torch

from net import SliderNet
from training_engine import TrainingEngine

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)


def scalar(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text.strip("'\"")


def load_config(path):
    config = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if not line.startswith(" "):
            section = config.setdefault(name.strip(), {})
        else:
            section[name.strip()] = scalar(value.strip())
    return config


def main():
    if not torch.cuda.is_available():
        sys.exit("this training needs a CUDA device")
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    config = load_config(Path(__file__).with_name("training_config.yaml"))
    engine = TrainingEngine(SliderNet(**config["model"]), config, torch.device("cuda"))
    engine.fit()


if __name__ == "__main__":
    main()
