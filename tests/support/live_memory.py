"""How many bytes are alive, and how many were at most."""

import weakref

import torch


class Live(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the bytes that are alive, allocation by allocation, and keeps the highest number."""

    def __init__(self):
        super().__init__()
        self.now, self.peak, self.known = 0, 0, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for item in torch.utils._pytree.tree_iter(out):
            if isinstance(item, torch.Tensor):
                storage = item.untyped_storage()
                if storage._cdata not in self.known:
                    self.known.add(storage._cdata)
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self.freed, storage._cdata, storage.nbytes())
        return out

    def freed(self, key, size):
        self.known.discard(key)
        self.now -= size
