#!/usr/bin/env python3
"""Speaks the language server protocol with shoal-lsp-server as an editor does, over its standard input and output.

usage: lsp.py session | malformed
"""

import json
import subprocess
import sys

LIMIT = 60
URI = "file:///model.mlir"
MODEL = """func.func @model(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %0 = nn.relu %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
WRONG = MODEL.replace("nn.relu %x", "nn.softmax %x dim = 2")


def frame(body):
    """A message with its header; `body` is an object, or text that need not be JSON."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def request(number, method, params=None):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def notification(method, params=None):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def at(line, character):
    return {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}


INITIALIZE = request(1, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})


def open_document(text):
    document = {"uri": URI, "languageId": "mlir", "version": 1, "text": text}
    return notification("textDocument/didOpen", {"textDocument": document})


def converse(stream):
    """The server's exit status and messages when `stream` is all it is sent."""
    done = subprocess.run(["shoal-lsp-server"], input=stream, capture_output=True, timeout=LIMIT)
    messages, output = [], done.stdout
    while output:
        header, _, output = output.partition(b"\r\n\r\n")
        length = int(header.split(b":")[1])
        messages.append(json.loads(output[:length]))
        output = output[length:]
    return done.returncode, messages


def session():
    """A session without faults: what the server says of a wrong model, then of a right one."""
    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": MODEL}]}
    sent = [
        INITIALIZE,
        notification("initialized", {}),
        open_document(WRONG),
        notification("textDocument/didChange", change),
        request(2, "textDocument/hover", at(1, 8)),
        request(3, "textDocument/definition", at(2, 10)),
        request(4, "shutdown"),
        notification("exit"),
    ]
    status, messages = converse(b"".join(map(frame, sent)))
    for message in messages:
        if message.get("method") == "textDocument/publishDiagnostics":
            for diagnostic in message["params"]["diagnostics"]:
                start = diagnostic["range"]["start"]
                print(f"diagnostic at {start['line']}:{start['character']}: {diagnostic['message']}")
            if not message["params"]["diagnostics"]:
                print("no diagnostics")
        elif message.get("id") == 2:
            print("hover:", message["result"]["contents"]["value"])
        elif message.get("id") == 3:
            for place in message["result"]:
                print("defined at", place["range"]["start"]["line"], place["range"]["start"]["character"])
    print("status", status)


def malformed():
    """Messages that no editor sends. The server may answer with an error or end; a signal is a crash."""
    hello = frame(INITIALIZE)
    cases = {
        "no message": b"",
        "no header": b"hello\r\n\r\n{}",
        "header without end": b"Content-Length: 10",
        "length not a number": b"Content-Length: many\r\n\r\n{}",
        "negative length": b"Content-Length: -1\r\n\r\n{}",
        "length past the end": b"Content-Length: 1000\r\n\r\n{}",
        "length past all memory": b"Content-Length: 99999999999999999999\r\n\r\n{}",
        "body not JSON": frame(b"{]"),
        "body not UTF-8": frame(b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}'),
        "body a number": frame(b"7"),
        "body an array": frame(b"[]"),
        "no version": frame({"id": 1, "method": "initialize"}),
        "no method": frame({"jsonrpc": "2.0", "id": 1}),
        "unknown method": frame(request(1, "textDocument/none", {})),
        "an answer to nothing": frame({"jsonrpc": "2.0", "id": 9, "result": {}}),
        "parameters of another type": hello + frame(notification("textDocument/didOpen", [1, "two", None])),
        "parameters missing": hello + frame(request(2, "textDocument/hover")),
        "text that is no text": hello + frame(open_document({"a": 1})),
        "document never opened": hello + frame(request(2, "textDocument/hover", at(0, 0))),
        "regions nested deeply": hello + frame(open_document("module { " * 20000)),
        "attributes nested deeply": hello + frame(open_document("func.func @f() attributes {a = " + "[" * 50000)),
        "types nested deeply": hello + frame(open_document("func.func private @f(" + "tuple<" * 50000)),
        "arrays nested deeply": frame(b"[" * 200000),
        "objects nested deeply": frame(b'{"a":' * 100000),
        "other scheme": hello + frame(open_document(MODEL)).replace(b"file:", b"http:"),
        "position past the end": hello + frame(open_document(MODEL)) + frame(request(2, "textDocument/hover", at(999, 999))),
        "negative position": hello + frame(open_document(MODEL)) + frame(request(2, "textDocument/definition", at(-1, -1))),
        "change past the end": hello + frame(open_document(MODEL)) + frame(notification("textDocument/didChange", {
            "textDocument": {"uri": URI, "version": 2},
            "contentChanges": [{"range": {"start": {"line": 5000, "character": 0}, "end": {"line": 1, "character": 0}},
                                "text": "x"}]})),
        "document of NUL bytes": hello + frame(open_document("\0" * 100)),
        "document cut short": hello + frame(open_document(MODEL[:60])),
        "closed twice": hello + frame(open_document(MODEL)) + 2 * frame(
            notification("textDocument/didClose", {"textDocument": {"uri": URI}})),
    }
    crashed = []
    for name, stream in cases.items():
        status, messages = converse(stream)
        if status not in (0, 1):
            crashed.append(f"{name}: status {status}")
        for message in messages:
            if "error" in message:
                print(f"{name}: {message['error']['message']}")
    # The server still works after what it could recover from.
    status, messages = converse(frame(b"{]") + hello + frame(open_document(WRONG)))
    if not any(m.get("method") == "textDocument/publishDiagnostics" for m in messages):
        crashed.append("no diagnostics after a body that is not JSON")
    print("\n".join(crashed) or f"{len(cases)} malformed streams, no crash")
    sys.exit(bool(crashed))


{"session": session, "malformed": malformed}[sys.argv[1]]()
