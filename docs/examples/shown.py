"""The beginning and the end of a long output."""

import holdfast
from holdfast import HeadTail

done = holdfast.run(["seq", "1", "100000"], capture=HeadTail(head=6, tail=13), text=True)
print(done.stdout, end="")
print(done.omitted.stdout)
