"""How float32 numbers are multiplied. From PyTorch 2.9 on there are settings for each kind of operation, and a program that uses one of them
gets an error where it reads the former ones: they are read only where the new ones do not exist."""


def _newer(torch):
    return getattr(torch._C, "_get_fp32_precision_getter", None)


def tf32_matmul(torch):
    get = _newer(torch)
    return get("cuda", "matmul") == "tf32" if get is not None else bool(torch.backends.cuda.matmul.allow_tf32)


def tf32_convolution(torch):
    get = _newer(torch)
    return get("cuda", "conv") == "tf32" if get is not None else bool(torch.backends.cudnn.allow_tf32)


def matmul(torch):
    """In the words of `torch.set_float32_matmul_precision`."""
    get = _newer(torch)
    if get is None:
        return torch.get_float32_matmul_precision()
    if get("mkldnn", "matmul") == "bf16":
        return "medium"
    return "high" if tf32_matmul(torch) else "highest"
