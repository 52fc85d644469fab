"""A check of what a server of holdfast has sent to a webhook."""

import hashlib
import hmac
import time


def is_genuine(secret: bytes, header: str, body: bytes, *, now: float, tolerance: float = 300) -> bool:
    """Whether a request is from the server, and no older than five minutes."""
    facts = dict(each.split("=", 1) for each in header.split(","))
    sent = facts["t"]
    proof = hmac.new(secret, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(proof, facts["v1"]) and abs(now - int(sent)) <= tolerance


if __name__ == "__main__":
    secret, body, sent = b"0123456789abcdef0123456789abcdef", b'{"kind":"exited"}', int(time.time())
    proof = hmac.new(secret, b"%d.%b" % (sent, body), hashlib.sha256).hexdigest()
    header = f"t={sent},v1={proof}"
    print("as it was sent:", is_genuine(secret, header, body, now=time.time()))
    print("with another body:", is_genuine(secret, header, body + b" ", now=time.time()))
    print("an hour later:", is_genuine(secret, header, body, now=time.time() + 3600))
