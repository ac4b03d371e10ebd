#!/usr/bin/env python3
"""Checks recorded SBI exchanges against the OpenAPI files of 3GPP.

    validate.py --openapi DIR RECORDING...

A recording is a file (or a directory of *.jsonl files) with a JSON object a line, one a message, as
`pith_sbi::HttpRequest::to_record` and `HttpResponse::to_record` write them:

    direction     "request" or "response"
    method, path  of the request; the path begins with the name of the API, or with a callback's
    query         of a request, as sent
    status        of a response
    headers       of a response, names in lower case
    content_type  of the body, if there is one
    body          the body's JSON; of a multipart/related body its first part
    parts         the other parts: content_id, media_type, octets
    raw           a body that is no JSON, such as a form

Each request and response is looked up by path, method and status, and checked: media type, body, path
and query parameters, Location, and that each part that the JSON refers to is there. A message of an API
that there is no file for is an error, and so is a file without messages.

Exit status: 0 all good, 1 something is wrong, 2 usage, 77 Python modules are missing.
"""

import argparse
import collections
import functools
import json
import pathlib
import re
import sys
import urllib.parse

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; pip install pyyaml jsonschema")
    sys.exit(77)

# The file of each API, by the first segments of its paths.
APIS = {
    "nausf-auth/v1": "TS29509_Nausf_UEAuthentication.yaml",
    "nudm-ueau/v1": "TS29503_Nudm_UEAU.yaml",
    "nudm-uecm/v1": "TS29503_Nudm_UECM.yaml",
    "nudm-sdm/v2": "TS29503_Nudm_SDM.yaml",
    "nudr-dr/v2": "TS29504_Nudr_DR.yaml",
    "nsmf-pdusession/v1": "TS29502_Nsmf_PDUSession.yaml",
    "namf-comm/v1": "TS29518_Namf_Communication.yaml",
    "npcf-am-policy-control/v1": "TS29507_Npcf_AMPolicyControl.yaml",
    "npcf-smpolicycontrol/v1": "TS29512_Npcf_SMPolicyControl.yaml",
    "npcf-policyauthorization/v1": "TS29514_Npcf_PolicyAuthorization.yaml",
    "nnrf-nfm/v1": "TS29510_Nnrf_NFManagement.yaml",
    "nnrf-disc/v1": "TS29510_Nnrf_NFDiscovery.yaml",
    "oauth2": "TS29510_Nnrf_AccessToken.yaml",
    "nnssf-nsselection/v2": "TS29531_Nnssf_NSSelection.yaml",
}

# Where each callback of ours is described: the operation that takes its URI, and the URI's expression.
CALLBACKS = {
    "dereg-notify": ("TS29503_Nudm_UECM.yaml", "/{ueId}/registrations/amf-3gpp-access", "put",
                     "{request.body#/deregCallbackUri}"),
    "sdm-change": ("TS29503_Nudm_SDM.yaml", "/{ueId}/sdm-subscriptions", "post",
                   "{request.body#/callbackReference}"),
    "data-change": ("TS29505_Subscription_Data.yaml", "/subscription-data/subs-to-notify", "post",
                    "{request.body#/callbackReference}"),
    "sm-context-status": ("TS29502_Nsmf_PDUSession.yaml", "/sm-contexts", "post",
                          "{$request.body#/smContextStatusUri}"),
    "n1n2-failure": ("TS29518_Namf_Communication.yaml",
                     "/ue-contexts/{ueContextId}/n1-n2-messages", "post",
                     "{$request.body#/n1n2FailureTxfNotifURI}"),
    "n2-info": ("TS29518_Namf_Communication.yaml", "/ue-contexts/{ueContextId}", "put",
                "{$request.body#/n2NotifyUri}"),
    "n1-message": ("TS29518_Namf_Communication.yaml",
                   "/ue-contexts/{ueContextId}/n1-n2-messages/subscriptions", "post",
                   "{$request.body#/n1NotifyCallbackUri}"),
    "am-policy/update": ("TS29507_Npcf_AMPolicyControl.yaml", "/policies", "post",
                         "{$request.body#/notificationUri}/update"),
    "am-policy/terminate": ("TS29507_Npcf_AMPolicyControl.yaml", "/policies", "post",
                            "{$request.body#/notificationUri}/terminate"),
    "sm-policy/update": ("TS29512_Npcf_SMPolicyControl.yaml", "/sm-policies", "post",
                         "{$request.body#/notificationUri}/update"),
    "sm-policy/terminate": ("TS29512_Npcf_SMPolicyControl.yaml", "/sm-policies", "post",
                            "{$request.body#/notificationUri}/terminate"),
    "app-session/notify": ("TS29514_Npcf_PolicyAuthorization.yaml", "/app-sessions", "post",
                           "{$request.body#/ascReqData/evSubsc/notifUri}/notify"),
    "app-session/terminate": ("TS29514_Npcf_PolicyAuthorization.yaml", "/app-sessions", "post",
                              "{$request.body#/ascReqData/notifUri}/terminate"),
    "nf-status": ("TS29510_Nnrf_NFManagement.yaml", "/subscriptions", "post",
                  "{$request.body#/nfStatusNotificationUri}"),
}

CALLBACK_PATH = re.compile(r"^/n[a-z0-9_]+-callback/v1/([^/]+)/[^/]+(/update|/terminate|/notify)?$")


class Wrong(Exception):
    """A message is not as the OpenAPI file has it."""


class Files:
    """The OpenAPI files, each read once; every $ref in them is made absolute: FILE#/pointer."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    @functools.lru_cache(maxsize=None)
    def load(self, name):
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        with open(self.directory / name, encoding="utf-8") as file:
            return self.absolute(yaml.load(file, loader), name)

    def absolute(self, node, name):
        if isinstance(node, list):
            return [self.absolute(item, name) for item in node]
        if not isinstance(node, dict):
            return node
        node = {key: self.absolute(value, name) for key, value in node.items()}
        ref = node.get("$ref")
        if isinstance(ref, str):
            file, _, pointer = ref.partition("#")
            node["$ref"] = f"{file or name}#{pointer}"
        return node

    def resolve(self, ref):
        name, _, pointer = ref.partition("#")
        node = self.load(name)
        for part in filter(None, pointer.split("/")):
            part = urllib.parse.unquote(part).replace("~1", "/").replace("~0", "~")
            node = node[part]
        return node

    def follow(self, node):
        while isinstance(node, dict) and "$ref" in node:
            node = self.resolve(node["$ref"])
        return node


def make_validator(files, direction):
    """JSON Schema of OpenAPI 3.0: draft 4, with `nullable`, and without what belongs to the other direction."""
    theirs = "readOnly" if direction == "request" else "writeOnly"
    draft = jsonschema.Draft4Validator

    def ref(validator, target, instance, _schema):
        yield from validator.descend(instance, files.resolve(target))

    def may_be_null(check):
        def checked(validator, value, instance, schema):
            if instance is None and schema.get("nullable"):
                return
            yield from check(validator, value, instance, schema)
        return checked

    def required(validator, names, instance, schema):
        properties = schema.get("properties", {})
        names = [n for n in names if not files.follow(properties.get(n, {})).get(theirs)
                 and not properties.get(n, {}).get(theirs)]
        yield from draft.VALIDATORS["required"](validator, names, instance, schema)

    keywords = {"$ref": ref, "required": required}
    keywords |= {k: may_be_null(draft.VALIDATORS[k]) for k in ("type", "enum")}
    return jsonschema.validators.extend(draft, keywords)


class Checker:
    """Looks messages up, and checks them."""

    def __init__(self, directory):
        self.files = Files(directory)
        self.validators = {d: make_validator(self.files, d) for d in ("request", "response")}
        self.seen = collections.Counter()

    def schema_errors(self, direction, schema, instance, where):
        checker = jsonschema.FormatChecker()
        validator = self.validators[direction](schema, format_checker=checker)
        for error in validator.iter_errors(instance):
            yield f"{where}{error.json_path[1:]}: {leaf(error)}"

    def operation(self, method, path):
        """The operation of the OpenAPI file, and the path parameters with their values."""
        callback = CALLBACK_PATH.match(path)
        if callback:
            name = callback[1] + (callback[2] or "")
            if name not in CALLBACKS:
                raise Wrong("no such callback")
            file, parent, verb, expression = CALLBACKS[name]
            item = self.files.load(file)["paths"][parent][verb]["callbacks"]
            item = next(c[expression] for c in item.values() if expression in c)
            return item[method.lower()], {}
        for prefix, file in APIS.items():
            if path.startswith(f"/{prefix}/"):
                full = path if prefix == "oauth2" else path[len(prefix) + 1:]
                return self.operation_of(file, method, full)
        raise Wrong("no OpenAPI file for this path")

    def operation_of(self, file, method, path):
        given = path.strip("/").split("/")
        matches = []
        for template, item in self.files.load(file)["paths"].items():
            item = self.files.follow(item)
            values = match_path(template, given)
            if values is not None and method.lower() in item:
                matches.append((len(values), template, values, item))
        if not matches:
            raise Wrong(f"no such path and method in {file}")
        _, _, values, item = min(matches, key=lambda match: match[:2])
        operation = dict(item[method.lower()])
        operation["parameters"] = item.get("parameters", []) + operation.get("parameters", [])
        return operation, values

    def check(self, message):
        """What is wrong with a message."""
        method, path = message["method"], message["path"]
        operation, values = self.operation(method, path)
        if message["direction"] == "request":
            self.seen[f"{method} {path}"] += 1
            yield from self.check_parameters(operation, values, message.get("query", ""))
            described = self.files.follow(operation.get("requestBody", {}))
            yield from self.check_body("request", described, message)
        else:
            yield from self.check_response(operation, message)
        yield from check_parts(message)

    def check_response(self, operation, message):
        responses = operation["responses"]
        status = str(message["status"])
        described = self.files.follow(responses.get(status) or responses.get("default"))
        if described is None:
            if message["status"] < 400:
                yield f"status {status} is not among {sorted(responses)}"
            return
        for name, header in described.get("headers", {}).items():
            header = self.files.follow(header)
            if header.get("required") and name.lower() not in message.get("headers", {}):
                yield f"header {name} is missing"
        if message["status"] >= 400 and not described.get("content"):
            return
        yield from self.check_body("response", described, message)

    def check_body(self, direction, described, message):
        content = described.get("content", {})
        media_type = message.get("content_type", "").split(";")[0].strip()
        if not media_type:
            if content and (described.get("required") or direction == "response"):
                yield "the body is missing"
            return
        if not content:
            yield "a body where there is none"
            return
        if media_type not in content:
            yield f"media type {media_type} is not among {sorted(content)}"
            return
        schema = content[media_type].get("schema", {})
        if media_type == "multipart/related":
            schema = self.files.follow(schema)["properties"]["jsonData"]
        if media_type == "application/x-www-form-urlencoded":
            yield from self.check_form(schema, content[media_type].get("encoding", {}), message.get("raw", ""))
        elif "body" not in message:
            yield f"the body is no JSON: {message.get('raw', '')[:80]!r}"
        else:
            yield from self.schema_errors(direction, schema, message["body"], "body")

    def check_form(self, schema, encoding, raw):
        properties = self.files.follow(schema).get("properties", {})
        form = {}
        for name, value in urllib.parse.parse_qsl(raw, keep_blank_values=True):
            if encoding.get(name, {}).get("contentType") == "application/json":
                try:
                    form[name] = json.loads(value)
                except ValueError:
                    yield f"form.{name} is no JSON: {value[:80]!r}"
            else:
                form[name] = self.parsed(properties.get(name, {}), value)
        yield from self.schema_errors("request", schema, form, "form")

    def parsed(self, schema, text):
        """A value of a form or a parameter, as its schema means it."""
        schema = self.files.follow(schema)
        kind = schema.get("type")
        if kind == "object" or kind in ("integer", "number", "boolean"):
            try:
                return json.loads(text)
            except ValueError:
                return text
        if kind == "array":
            return [self.parsed(schema["items"], item) for item in text.split(",")]
        return text

    def check_parameters(self, operation, values, query):
        given = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        known = set()
        for parameter in map(self.files.follow, operation.get("parameters", [])):
            name, place = parameter["name"], parameter["in"]
            known.add((place, name))
            source = {"path": values, "query": given}.get(place)
            if source is None:
                continue
            if name not in source:
                if parameter.get("required"):
                    yield f"{place} parameter {name} is missing"
                continue
            yield from self.check_parameter(parameter, source[name], f"{place} {name}")
        for name in given:
            if ("query", name) not in known:
                yield f"query parameter {name} is not in the OpenAPI file"

    def check_parameter(self, parameter, text, where):
        if "content" in parameter:
            schema = parameter["content"]["application/json"]["schema"]
            try:
                value = json.loads(text)
            except ValueError:
                yield f"{where} is no JSON: {text[:80]!r}"
                return
        else:
            schema = parameter["schema"]
            value = self.parsed(schema, text)
        yield from self.schema_errors("request", schema, value, where)


def leaf(error):
    """The nearest reason: what went wrong in the alternative that came furthest."""
    while error.context:
        error = max(error.context, key=lambda e: len(e.absolute_path))
    return error.message[:300]


def match_path(template, given):
    """The values of the path's variables, or None if the path is another."""
    expected = template.strip("/").split("/")
    if len(expected) != len(given):
        return None
    values = {}
    for pattern, segment in zip(expected, given):
        if pattern.startswith("{"):
            values[pattern[1:-1]] = urllib.parse.unquote(segment)
        elif pattern != segment:
            return None
    return values


def check_parts(message):
    """Each part that the JSON refers to is there, and no other."""
    referred = sorted(content_ids(message.get("body")))
    there = sorted(part["content_id"] for part in message.get("parts", []))
    if referred != there:
        yield f"the JSON refers to parts {referred}, there are {there}"
    for part in message.get("parts", []):
        if part["media_type"] not in ("application/vnd.3gpp.5gnas", "application/vnd.3gpp.ngap"):
            yield f"part {part['content_id']} has the media type {part['media_type']!r}"


def content_ids(node):
    if isinstance(node, list):
        for item in node:
            yield from content_ids(item)
    elif isinstance(node, dict):
        if set(node) == {"contentId"}:
            yield node["contentId"]
        for value in node.values():
            yield from content_ids(value)


def recordings(paths):
    for path in map(pathlib.Path, paths):
        yield from sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--openapi", required=True, help="directory of the OpenAPI files")
    parser.add_argument("recordings", nargs="+", help="JSONL files, or directories of them")
    arguments = parser.parse_args()
    checker = Checker(arguments.openapi)
    messages = problems = wrong = 0
    for path in recordings(arguments.recordings):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if not lines:
            print(f"{path}: no messages")
            wrong += 1
        for number, line in enumerate(lines, 1):
            messages += 1
            message = json.loads(line)
            try:
                errors = list(checker.check(message))
            except Wrong as error:
                errors = [str(error)]
            status = message.get("status", "")
            problems += message.get("status", 0) >= 400
            for error in errors:
                print(f"{path}:{number}: {message['method']} {message['path']} {status}: {error}")
            wrong += bool(errors)
    if not messages:
        print("no messages")
        return 1
    print(f"{messages} messages, {problems} of them problems, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
