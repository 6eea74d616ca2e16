from torch import nn


def block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


def defect_net(classes=4):
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=4, padding=2),
        nn.ReLU(inplace=True),
        block(8, 16, 2),
        block(16, 32, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, classes),
    )
