#!/usr/bin/env python3
"""Requests to the SBI of a core of nine processes that have to be refused: without a certificate, with the certificate of another
NF, and with access tokens that are not good (TS 33.501 13.1, 13.4.1; TS 29.500 6.7.3; RFC 6750 3).

usage: sbi.py WORK, in the core's network namespace. WORK/pki holds the CA and the certificates of an NSSF, an AUSF and a UDM at
127.0.0.92, .93 and .94; WORK/split/nrf-token-keys.json the keys with which the NRF signs.

curl is the client and OpenSSL signs, so neither is Pith's own. Prints 'scas NAME pass|fail WHAT' for each case.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time

WORK = sys.argv[1]
NRF, UDR, UDM, AMF = (f"https://127.0.0.{host}:7777" for host in (10, 20, 12, 5))
KEYS_OF_SUBSCRIBER = f"{UDR}/nudr-dr/v2/subscription-data/imsi-999700000000001/authentication-data/authentication-subscription"
ROLES = {"nssf": "nssf-127.0.0.92-7777", "ausf": "ausf-127.0.0.93-7777", "udm": "udm-127.0.0.94-7777"}


class Refused(Exception):
    """A case does not hold, and why."""


def certificate(nf):
    return os.path.join(WORK, "pki", ROLES[nf] + ".pem")


def instance(nf):
    with open(os.path.join(WORK, "pki", ROLES[nf] + ".json")) as file:
        return json.load(file)[nf][0]


class Answer:
    """What curl got."""

    def __init__(self, nf, url, *options, token=None):
        command = ["curl", "-sS", "-i", "--http2", "--max-time", "5", "--cacert", os.path.join(WORK, "pki", "ca.crt")]
        if nf:
            command += ["--cert", certificate(nf), "--key", certificate(nf)]
        if token:
            command += ["-H", f"Authorization: Bearer {token}"]
        done = subprocess.run([*command, *options, url], capture_output=True)
        self.error = done.stderr.decode().strip()
        # Not text=True, which makes "\n" of "\r\n".
        head, _, self.body = done.stdout.decode().partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.status = int(lines[0].split()[1]) if done.stdout else 0
        pairs = (line.split(": ", 1) for line in lines[1:] if ": " in line)
        self.headers = {name.lower(): value for name, value in pairs}

    def demand(self, status, challenge=None, detail=""):
        """A ProblemDetails of that status, with that WWW-Authenticate."""
        seen = f"{self.status} {self.headers} {self.body[:300]} {self.error}"
        if self.status != status or self.headers.get("content-type") != "application/problem+json":
            raise Refused(f"expected {status}: {seen}")
        if json.loads(self.body).get("status") != status or detail not in self.body:
            raise Refused(f"expected status {status} and '{detail}' in the body: {seen}")
        if self.headers.get("www-authenticate") != challenge:
            raise Refused(f"expected WWW-Authenticate: {challenge}: {seen}")


def request_token(nf, target, scope):
    form = {"grant_type": "client_credentials", "nfInstanceId": instance(nf), "nfType": nf.upper(), "targetNfType": target, "scope": scope}
    data = "&".join(f"{name}={value}" for name, value in form.items())
    answer = Answer(nf, f"{NRF}/oauth2/token", "-d", data)
    if answer.status != 200:
        raise Refused(f"no token for {nf}: {answer.status} {answer.body} {answer.error}")
    return json.loads(answer.body)["access_token"]


def decode(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def encode(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def signed_by_nrf(token, **changed):
    """The token with other claims, signed by OpenSSL with the NRF's key."""
    header, claims, _ = token.split(".")
    claims = {**decode(claims), **changed}
    signing_input = f"{header}.{encode(json.dumps(claims).encode())}"
    with open(os.path.join(WORK, "split", "nrf-token-keys.json")) as file:
        number = bytes.fromhex(json.load(file)[-1]["d"])
    # ECPrivateKey (RFC 5915): version 1, the number, prime256v1.
    der = bytes.fromhex("30310201010420") + number + bytes.fromhex("a00a06082a8648ce3d030107")
    with tempfile.NamedTemporaryFile(suffix=".der") as key:
        key.write(der)
        key.flush()
        command = ["openssl", "dgst", "-sha256", "-keyform", "DER", "-sign", key.name]
        signature = subprocess.run(command, input=signing_input.encode(), capture_output=True, check=True).stdout
    return f"{signing_input}.{encode(raw(signature))}"


def raw(der):
    """R and S of 32 octets each (RFC 7518 3.4) of an ECDSA signature in DER."""
    at, numbers = 2, []
    for _ in range(2):
        length = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2 : at + 2 + length], "big").to_bytes(32, "big"))
        at += 2 + length
    return b"".join(numbers)


INVALID = 'Bearer realm="5GC", error="invalid_token"'


def missing(scope):
    return f'Bearer realm="5GC", scope="{scope}"'


def insufficient(scope):
    return f'Bearer realm="5GC", error="insufficient_scope", scope="{scope}"'


def sbi_no_certificate():
    answer = Answer(None, KEYS_OF_SUBSCRIBER)
    if answer.status or "certificate required" not in answer.error:
        raise Refused(f"answered with {answer.status}: {answer.body} {answer.error}")


def sbi_other_certificate():
    profile = {"nfInstanceId": instance("nssf"), "nfType": "UDM", "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.92"]}
    put = lambda profile: Answer(
        "nssf", f"{NRF}/nnrf-nfm/v1/nf-instances/{profile['nfInstanceId']}", "-X", "PUT", "-H", "content-type: application/json", "-d", json.dumps(profile)
    )
    put(profile).demand(403, detail="certificate")
    other = {**profile, "nfType": "NSSF", "nfInstanceId": instance("udm")}
    put(other).demand(403, detail="certificate")
    own = put({**profile, "nfType": "NSSF"})
    if own.status != 201:
        raise Refused(f"its own profile is refused: {own.status} {own.body}")
    Answer("nssf", f"{NRF}/nnrf-nfm/v1/nf-instances/{instance('nssf')}", "-X", "DELETE")
    # A UDM's token is of no use without the UDM's certificate.
    token = request_token("udm", "UDR", "nudr-dr")
    Answer("nssf", KEYS_OF_SUBSCRIBER, token=token).demand(401, INVALID, "another NF")
    # The NRF gives it no token in the name of another, nor for a service that is not for its type.
    for nf, target, scope in (("udm", "UDR", "nudr-dr"), ("nssf", "UDR", "nudr-dr")):
        form = f"grant_type=client_credentials&nfInstanceId={instance(nf)}&nfType={nf.upper()}&targetNfType={target}&scope={scope}"
        answer = Answer("nssf", f"{NRF}/oauth2/token", "-d", form)
        error = json.loads(answer.body or "{}").get("error")
        if answer.status != 400 or error not in ("invalid_client", "unauthorized_client"):
            raise Refused(f"the NRF answers {answer.status} {answer.body}")


def sbi_token_of_another_service():
    token = request_token("nssf", "NSSF", "nnssf-nsselection")
    Answer("nssf", KEYS_OF_SUBSCRIBER, token=token).demand(401, INVALID, "another NF")
    # The same producer, another service of it.
    token = request_token("ausf", "UDM", "nudm-ueau")
    Answer("ausf", f"{UDM}/nudm-sdm/v2/imsi-999700000000001/am-data", token=token).demand(403, insufficient("nudm-sdm"))
    # The same service, other operations of it.
    token = request_token("udm", "UDR", "nudr-dr")
    policy = f"{UDR}/nudr-dr/v2/policy-data/ues/imsi-999700000000001/am-data"
    Answer("udm", policy, token=token).demand(403, insufficient("nudr-dr:policy-data"))


def sbi_expired_token():
    token = request_token("udm", "UDR", "nudr-dr")
    fresh = Answer("udm", KEYS_OF_SUBSCRIBER, token=signed_by_nrf(token, exp=int(time.time()) + 60))
    if fresh.status != 200:
        raise Refused(f"a token that OpenSSL signed is refused: {fresh.status} {fresh.body}")
    expired = signed_by_nrf(token, exp=int(time.time()) - 60)
    Answer("udm", KEYS_OF_SUBSCRIBER, token=expired).demand(401, INVALID, "expired")


def sbi_no_token():
    Answer("udm", KEYS_OF_SUBSCRIBER).demand(401, missing("nudr-dr"))
    Answer("ausf", f"{AMF}/namf-comm/v1/ue-contexts/imsi-999700000000001/n1-n2-messages", "-X", "POST").demand(401, missing("namf-comm"))


def sbi_bad_signature():
    signed, _, signature = request_token("udm", "UDR", "nudr-dr").rpartition(".")
    changed = ("A" if signature[9] != "A" else "B").join((signature[:9], signature[10:]))
    Answer("udm", KEYS_OF_SUBSCRIBER, token=f"{signed}.{changed}").demand(401, INVALID, "signature")
    header, claims, signature = request_token("udm", "UDR", "nudr-dr").split(".")
    none = encode(json.dumps({**decode(header), "alg": "none"}).encode())
    for token in (f"{none}.{claims}.", f"{none}.{claims}.{signature}", "not-a-token"):
        Answer("udm", KEYS_OF_SUBSCRIBER, token=token).demand(401, INVALID)


def main():
    for case in (sbi_no_certificate, sbi_other_certificate, sbi_token_of_another_service, sbi_expired_token, sbi_no_token, sbi_bad_signature):
        try:
            case()
            print(f"scas {case.__name__} pass")
        except (Refused, OSError, ValueError, KeyError, IndexError, subprocess.CalledProcessError) as error:
            print(f"scas {case.__name__} fail {type(error).__name__} {error}".replace("\n", " "))


if __name__ == "__main__":
    main()
