"""Distill a convolutional teacher into a small MLP on seven-segment digits."""
import torch
import torch.nn.functional as F
from torch import nn

SEED, N_TRAIN, N_TEST = 21, 4000, 1000
SEGMENTS = ["abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg"]
BOXES = {"a": (4, 6, 9, 19), "b": (5, 14, 18, 20), "c": (14, 23, 18, 20), "d": (22, 24, 9, 19),
         "e": (14, 23, 8, 10), "f": (5, 14, 8, 10), "g": (13, 15, 9, 19)}


def make_digits(n):
    glyphs = torch.zeros(10, 28, 28)
    for digit, segments in enumerate(SEGMENTS):
        for s in segments:
            top, bottom, left, right = BOXES[s]
            glyphs[digit, top:bottom, left:right] = 1.0
    labels = torch.randint(0, 10, (n,))
    theta = torch.eye(2, 3).repeat(n, 1, 1) + 0.12 * torch.randn(n, 2, 3)
    grid = F.affine_grid(theta, (n, 1, 28, 28), align_corners=False)
    images = F.grid_sample(glyphs[labels].unsqueeze(1), grid, align_corners=False)
    return images + 0.35 * torch.randn_like(images), labels


def make_teacher():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        nn.Flatten(), nn.Linear(576, 10))


def make_student():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def fit(model, loss_of, n, epochs, lr, name, batch_size=128):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for epoch in range(1, epochs + 1):
        total = torch.zeros(())
        for index in torch.randperm(n).split(batch_size):
            loss = loss_of(index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(index)
        print(f"{name} epoch {epoch}: loss {total.item() / n:.4f}")


@torch.inference_mode()
def predict(model, images):
    model.eval()
    return torch.cat([model(chunk) for chunk in images.split(500)])


def main():
    torch.manual_seed(SEED)
    images, labels = make_digits(N_TRAIN)
    test_images, test_labels = make_digits(N_TEST)

    teacher = make_teacher()
    fit(teacher, lambda i: F.cross_entropy(teacher(images[i]), labels[i]), N_TRAIN, 8, 2e-3, "teacher")
    soft = torch.softmax(predict(teacher, images).clone() / 3.0, dim=1)

    student = make_student()

    def distillation_loss(i):
        logits = student(images[i])
        kl = F.kl_div(F.log_softmax(logits / 3.0, dim=1), soft[i], reduction="batchmean")
        return 9.0 * 0.7 * kl + 0.3 * F.cross_entropy(logits, labels[i])

    fit(student, distillation_loss, N_TRAIN, 15, 1e-3, "student")
    for name, model in (("teacher", teacher), ("student", student)):
        accuracy = (predict(model, test_images).argmax(1) == test_labels).float().mean().item()
        print(f"{name} test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
