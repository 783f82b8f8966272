"""A batch of 6 rows of which v are real gives the loss and the gradients of a batch of v rows.

The model reduces its batch in every way there is. Once it goes through nn-explicit-counts with 6 rows and v of them
valid, once it is written for v rows. The reference interpreter runs both on the same numbers.
"""
import re
import subprocess
import sys

ROWS = 6

MODEL = """
  %h = nn.matmul %x, %w : (tensor<Rx4xf64>, tensor<4x5xf64>) -> tensor<Rx5xf64>
  %mse = nn.mse_loss mean %h, %t : (tensor<Rx5xf64>, tensor<Rx5xf64>) -> tensor<f64>
  %p = nn.softmax %h dim = 0 : tensor<Rx5xf64>
  %ph = nn.mul %p, %h : (tensor<Rx5xf64>, tensor<Rx5xf64>) -> tensor<Rx5xf64>
  %attended = nn.reduce sum %ph dims = [0] : tensor<Rx5xf64> -> tensor<5xf64>
  %features = nn.reduce mean %attended dims = [0] : tensor<5xf64> -> tensor<f64>
  %gram = nn.matmul %h, %h {transpose_b} : (tensor<Rx5xf64>, tensor<Rx5xf64>) -> tensor<RxRxf64>
  %similarity = nn.reduce mean %gram dims = [0, 1] : tensor<RxRxf64> -> tensor<f64>
  %soft, %soft_lse = nn.cross_entropy mean %h, %t : (tensor<Rx5xf64>, tensor<Rx5xf64>) -> tensor<f64>
  %hard, %hard_lse = nn.cross_entropy mean %h, %y ignore_index = 2 : (tensor<Rx5xf64>, tensor<Rxi64>) -> tensor<f64>
  %flat = nn.reshape %h : tensor<Rx5xf64> -> tensor<Fx1xf64>
  %max = nn.reduce max %flat dims = [0, 1] : tensor<Fx1xf64> -> tensor<f64>
  %ht = nn.transpose %h [1, 0] : tensor<Rx5xf64> -> tensor<5xRxf64>
  %cov = nn.matmul %ht, %h : (tensor<5xRxf64>, tensor<Rx5xf64>) -> tensor<5x5xf64>
  %variance = nn.reduce mean %cov dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %s0 = nn.add %mse, %features : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %s1 = nn.sub %s0, %similarity : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %s2 = nn.mul %s1, %max : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %s3 = nn.add %s2, %soft : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %s4 = nn.add %s3, %hard : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %loss = nn.add %s4, %variance : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss : tensor<f64>
}
"""


def model(rows, unbatched, first=""):
    """The model for a number of rows; `first` holds ops before it that define its inputs."""
    def argument(name, shape, alias):
        role = f'#nn.input<"{name}", unbatched>' if unbatched else f'"{name}"'
        return f"%{alias}: tensor<{ROWS}x{shape}> {{nn.input = {role}}}"

    suffix = "_all" if first else ""
    arguments = [argument("x", "4xf64", "x" + suffix), argument("t", "5xf64", "t" + suffix),
                 argument("y", "i64", "y" + suffix),
                 '%w: tensor<4x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 1.0)>}']
    body = re.sub(r"\bF(?=x)", str(5 * rows), MODEL)
    body = re.sub(r"(?<=[<x])R(?=x)", str(rows), body)
    return f"func.func @f({', '.join(arguments)}) -> (tensor<f64> {{nn.loss}}) {{\n{first}{body}"


def shoal_opt(text, *options):
    done = subprocess.run(["shoal-opt", "-", *options], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def interpret(text):
    return shoal_opt(text, "--nn-differentiate", "--interpret=precision=f64 elements=20", "-o", "/dev/null")


def with_valid_rows(rows):
    """nn-explicit-counts, then the hidden argument as a constant and the inputs whole."""
    text = shoal_opt(model(ROWS, unbatched=False), "--nn-explicit-counts")
    text, count = re.subn(r", (%\w+): tensor<i64> \{nn\.valid_rows\}\)(.*)\n",
                          rf")\2\n\1 = nn.constant dense<{rows}> : tensor<i64>\n", text)
    assert count == 1, "one argument holds the valid rows"
    return re.sub(r'nn\.input = ("\w")', r"nn.input = #nn.input<\1, unbatched>", text)


def sliced(rows):
    def cut(name, shape):
        return (f"  %{name} = nn.slice %{name}_all dim = 0 start = 0 : "
                f"tensor<{ROWS}x{shape}> -> tensor<{rows}x{shape}>\n")

    first = cut("x", "4xf64") + cut("t", "5xf64") + cut("y", "i64")
    # Its inputs are no batch: means become sums and constants, and nothing is masked.
    text = shoal_opt(model(rows, unbatched=True, first=first), "--nn-explicit-counts")
    assert "nn.valid_rows" not in text and "nn.mask" not in text, text
    return text


for rows in (1, 2, 5, 6):
    masked, plain = interpret(with_valid_rows(rows)), interpret(sliced(rows))
    assert "gradient of w" in plain, plain
    if masked != plain:
        sys.exit(f"{rows} of {ROWS} rows are valid, but the result differs\nwith valid rows:\n{masked}\nrows alone:\n{plain}")
    print(f"{rows} of {ROWS} rows: equal")
