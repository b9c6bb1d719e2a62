"""Compares recorded answers of the service with openapi.json, strictly.

judge.py DOCUMENT META TAPE            prints what is wrong; status 1 if anything is
judge.py --planted DOCUMENT META TAPE  plants faults in copies; status 1 if one goes unnoticed

META is the JSON schema of OpenAPI 3.1 documents. TAPE has one JSON object a line: method, path,
status, headers, body. Wrong is:
- a document that its meta schema or the rules of structure() refuse
- an answer whose status, header, media type or field is not described, or not as it was sent
- an operation, status, header or field that is described and that no answer of the tape has
"""
import copy
import json
import re
import sys

import jsonschema

# Headers of HTTP itself, which OpenAPI leaves out or describes by other words.
PLAIN_HEADERS = {"cache-control", "connection", "content-length", "content-type", "date", "transfer-encoding"}
# What no test can bring about from outside: operation, status, why. "*" is any.
NOT_SHOWN = [
    ("*", "503", {"live", "metrics", "openapi", "page", "pageFile", "problem", "listGuards",
                 "events"}, "without memory, or when too many ask: app/http/, app/service/"),
]


def methods(item):
    return {m: o for m, o in item.items() if m in ("get", "put", "post", "patch", "delete")}


class Document:
    def __init__(self, document):
        self.root = document
        self.seen = set()
        self.described = set()
        self.errors = []
        self.paths = [(p, re.compile("^" + re.sub(r"\\{[a-z]+\\}", "[^/]*", re.escape(p)) + "$"))
                      for p in document["paths"]]

    def wrong(self, where, what):
        self.errors.append(f"{where}: {what}")

    def at(self, pointer):
        node = self.root
        for step in pointer.lstrip("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
        return node

    def resolve(self, node, name):
        """The target of $ref, and its name; members beside $ref are kept."""
        while "$ref" in node:
            beside = {k: v for k, v in node.items() if k != "$ref"}
            name = node["$ref"]
            node = {**self.at(name), **beside}
        return node, name

    def find(self, path):
        return next((p for p, pattern in self.paths if p == path), None) or \
            next((p for p, pattern in self.paths if pattern.match(path)), None)

    # -- schemas ----------------------------------------------------------------------------------

    def strict(self, schema, name, closed=True):
        """The schema without references, which refuses every field that it does not name."""
        schema, name = self.resolve(schema, name)
        out = dict(schema)
        if "properties" in schema:
            out["properties"] = {k: self.strict(v, f"{name}/{k}")
                                 for k, v in schema["properties"].items()}
            for field in schema["properties"]:
                self.described.add(f"field {name}/{field}")
            out.setdefault("additionalProperties", False)
        elif schema.get("type") == "object" and "additionalProperties" not in schema:
            self.wrong(name, "an object of which nothing is said")
        if isinstance(schema.get("additionalProperties"), dict):
            out["additionalProperties"] = self.strict(schema["additionalProperties"], name + "/*")
        if "items" in schema:
            out["items"] = self.strict(schema["items"], f"{name}[]")
        for word in ("oneOf", "anyOf"):
            if word in schema:
                out[word] = [self.strict(s, f"{name}|{i}") for i, s in enumerate(schema[word])]
        return out

    def note(self, schema, value, name):
        """Remembers which described fields a value has."""
        schema, name = self.resolve(schema, name)
        if isinstance(value, dict):
            for field, inner in schema.get("properties", {}).items():
                if field in value:
                    self.seen.add(f"field {name}/{field}")
                    self.note(inner, value[field], f"{name}/{field}")
        if isinstance(value, list) and "items" in schema:
            for inner in value:
                self.note(schema["items"], inner, f"{name}[]")
        for word in ("oneOf", "anyOf"):
            for i, inner in enumerate(schema.get(word, [])):
                plain = self.strict(inner, name)
                if jsonschema.Draft202012Validator(plain).is_valid(value):
                    self.note(inner, value, f"{name}|{i}")

    # -- answers ----------------------------------------------------------------------------------

    def check_body(self, response, answer, where, name):
        kind = answer["headers"].get("content-type", "").split(";")[0].strip()
        content = response.get("content", {})
        if not content and not kind:  # 304
            if answer["body"]:
                self.wrong(where, "a body that is not described")
            return
        if kind not in content:
            self.wrong(where, f"media type {kind!r} is not described")
            return
        self.seen.add(f"media type {name} {kind}")
        schema = content[kind].get("schema", {})
        body = answer["body"]
        if answer["method"] == "HEAD":
            return
        if kind.endswith("json"):
            body = json.loads(body)
        strict = self.strict(schema, f"{name}/body")
        for error in jsonschema.Draft202012Validator(strict).iter_errors(body):
            at = "/".join(map(str, error.absolute_path))
            self.wrong(where, f"field {at or '(body)'}: {error.message[:300]}")
        self.note(schema, body, f"{name}/body")

    def check_headers(self, response, answer, where, name):
        described = {h.lower(): (h, v) for h, v in response.get("headers", {}).items()}
        if answer["headers"].get("cache-control") != "no-store":
            self.wrong(where, "an answer that may be stored")
        for header, value in answer["headers"].items():
            if header in PLAIN_HEADERS:
                continue
            if header not in described:
                self.wrong(where, f"header {header} is not described")
                continue
            self.seen.add(f"header {name} {described[header][0]}")
            schema = self.resolve(described[header][1], "")[0]["schema"]
            if schema.get("type") == "integer" and re.fullmatch("[0-9]+", value):
                value = int(value)
            for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
                self.wrong(where, f"header {header}: {error.message}")
        for header, (_, value) in described.items():
            if self.resolve(value, "")[0].get("required") and header not in answer["headers"]:
                self.wrong(where, f"header {header} is missing")

    def check_response(self, response, answer, where, name):
        response, name = self.resolve(response, name)
        self.check_headers(response, answer, where, name)
        self.check_body(response, answer, where, name)

    def check(self, answer):
        method, status = answer["method"], str(answer["status"])
        where = f"{method} {answer['path'][:120]} -> {status}"
        path = self.find(answer["path"].split("?")[0])
        if path is None:
            if status != "404":
                self.wrong(where, "the path is not described")
            self.check_response({"$ref": "#/components/responses/Problem404"}, answer, where, "")
            return
        item = self.root["paths"][path]
        operation = item.get("get" if method == "HEAD" else method.lower())
        if operation is None:
            allow = ", ".join(sorted(methods(item))).upper()
            said = ", ".join(sorted(m for m in answer["headers"].get("allow", "").split(", ")
                                    if m != "HEAD"))
            if status != "405" or said != allow:
                self.wrong(where, f"the method is not described; Allow is {said!r}")
            self.check_response({"$ref": "#/components/responses/Problem405"}, answer, where, "")
            return
        name = operation["operationId"]
        if status not in operation["responses"]:
            self.wrong(where, f"status {status} of {name} is not described")
            return
        self.seen.add(f"status {name} {status}")
        self.check_response(operation["responses"][status], answer, where, f"{name}/{status}")

    # -- the document -----------------------------------------------------------------------------

    def describe(self):
        """Collects what an answer must show."""
        used = [{"$ref": "#/components/responses/Problem404"},
                {"$ref": "#/components/responses/Problem405"}]
        for item in self.root["paths"].values():
            for operation in methods(item).values():
                name = operation["operationId"]
                for status, response in operation["responses"].items():
                    if not any(s == status and name in who for _, s, who, _ in NOT_SHOWN):
                        self.described.add(f"status {name} {status}")
                        used.append((response, f"{name}/{status}"))
        for one in used:
            response, name = self.resolve(*one) if isinstance(one, tuple) else self.resolve(one, "")
            self.described |= {f"header {name} {h}" for h in response.get("headers", {})}
            for kind, content in response.get("content", {}).items():
                self.described.add(f"media type {name} {kind}")
                self.strict(content.get("schema", {}), f"{name}/body")

    def structure(self, meta):
        for error in jsonschema.Draft202012Validator(meta).iter_errors(self.root):
            self.wrong("/".join(map(str, error.absolute_path)), error.message[:200])
        text = json.dumps(self.root)
        ids, tags = [], {t["name"] for t in self.root.get("tags", [])}
        for path, item in self.root["paths"].items():
            for method, operation in methods(item).items():
                where = f"{method.upper()} {path}"
                ids.append(operation.get("operationId"))
                given = [self.resolve(p, "")[0] for p in
                         item.get("parameters", []) + operation.get("parameters", [])]
                names = {p["name"] for p in given if p["in"] == "path"}
                if names != set(re.findall(r"\{([a-z]+)\}", path)):
                    self.wrong(where, f"the parameters in the path are {names}")
                if not set(operation.get("tags", [])) <= tags or not operation.get("tags"):
                    self.wrong(where, "its tags are not those of the document")
                if not operation.get("summary"):
                    self.wrong(where, "no summary")
        for twice in {i for i in ids if ids.count(i) > 1}:
            self.wrong(twice, "operationId is not unique")
        for kind, parts in self.root["components"].items():
            for name in parts:
                if kind != "securitySchemes" and f'"#/components/{kind}/{name}"' not in text:
                    if name not in ("Problem404", "Problem405"):
                        self.wrong(f"components/{kind}/{name}", "nothing refers to it")


def judge(root, meta, tape):
    document = Document(root)
    document.structure(meta)
    document.describe()
    for answer in tape:
        document.check(answer)
    for one in sorted(document.described - document.seen):
        document.wrong(one, "described, and no answer has shown it")
    return document.errors


def planted(root, meta, tape):
    """Yields a name, a faulty document or tape, and what the judge must say."""
    def order(d):
        return d["components"]["schemas"]["Order"]

    def plant(change):
        copied = copy.deepcopy((root, tape))
        change(*copied)
        return copied

    yield ("a field that is not described",
           plant(lambda d, t: order(d)["properties"].pop("amount")), "'amount' was unexpected")
    yield ("a field of another type",
           plant(lambda d, t: order(d)["properties"].update(amount={"type": "string"})),
           "field amount")
    yield ("a field that is never sent",
           plant(lambda d, t: order(d)["properties"].update(tax={"type": "integer"})), "Order/tax")
    yield ("a required field that is not sent",
           plant(lambda d, t: order(d)["required"].append("tax")), "'tax' is a required property")
    yield ("a status that is not described",
           plant(lambda d, t: d["paths"]["/v1/items/{id}/orders"]["post"]["responses"].pop("409")),
           "status 409 of placeOrder is not described")
    yield ("a status that is never sent",
           plant(lambda d, t: d["paths"]["/v1/items/{id}"]["get"]["responses"].update(
               {"418": {"$ref": "#/components/responses/Problem404"}})), "status getItem 418")
    yield ("a header that is not described",
           plant(lambda d, t: d["components"]["responses"]["Problem503"]["headers"].pop(
               "Retry-After")), "header retry-after is not described")
    yield ("a method that is not described",
           plant(lambda d, t: d["paths"]["/v1/items/{id}"].pop("put")), "the method is not described")
    yield ("an operation that is never asked",
           plant(lambda d, t: t.__setitem__(slice(None), [a for a in t if a["path"] != "/livez"])),
           "status live 200")
    yield ("another media type",
           plant(lambda d, t: t[0]["headers"].update({"content-type": "text/html"})), "media type")
    yield ("a document that is no OpenAPI",
           plant(lambda d, t: d["paths"]["/livez"]["get"].pop("responses")
                 and d["paths"]["/livez"]["get"].update(responses={"200": {}})), "description")


def main():
    plants = sys.argv[1] == "--planted"
    with open(sys.argv[-3]) as document, open(sys.argv[-2]) as meta, open(sys.argv[-1]) as tape:
        root, meta, tape = json.load(document), json.load(meta), [json.loads(a) for a in tape]
    if not plants:
        errors = judge(root, meta, tape)
        print("\n".join(errors[:200]))
        print(f"{len(tape)} answers, {len(errors)} errors")
        return 1 if errors else 0
    missed = 0
    for name, (document, answers), expected in planted(root, meta, tape):
        if not any(expected in error for error in judge(document, meta, answers)):
            missed += 1
            print(f"not noticed: {name}")
    return 1 if missed else 0


sys.exit(main())
