"""Loop passes of GPUs: loops shared out to threads, and sums over lanes. The same rules hold as for passes/."""
