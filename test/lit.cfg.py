# How lit runs Shoal's tests: .mlir through shoal-opt and FileCheck, .test for whole programs.
import os
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config

config.name = "Shoal"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "golden", "support", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.shoal_binary_dir, "test")

# Models that other tests take as input are no tests themselves.
llvm_config.use_default_substitutions()
llvm_config.with_environment("PATH", config.shoal_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --dump-input-filter=error"

# Ranks of the tests run on one machine, whoever the user is.
config.environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
config.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# scripts/test.sh --full: the long matrix of plans and meshes.
if os.environ.get("SHOAL_TEST_FULL"):
    config.available_features.add("long")

config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%support", os.path.join(config.test_source_root, "support")))
config.substitutions.append(("%examples", os.path.join(config.shoal_source_dir, "examples")))
config.substitutions.append(("%benchmarks", os.path.join(config.shoal_source_dir, "benchmarks")))
config.substitutions.append(("%records", os.path.join(config.shoal_source_dir, "scripts", "records.py")))
config.substitutions.append(("%lit", os.path.abspath(sys.argv[0])))

# What a build of some targets alone, as scripts/demo.sh makes it, lacks: tests that need it are not run, and one is
# told why.
pmpi_count = os.path.join(config.shoal_lib_dir, "libshoal_pmpi_count.so")
lsp_server = os.path.join(config.shoal_tools_dir, "shoal-lsp-server")
for feature, path, target in (("pmpi-count", pmpi_count, "shoal_pmpi_count"),
                              ("lsp-server", lsp_server, "shoal-lsp-server")):
    if os.path.exists(path):
        config.available_features.add(feature)
    else:
        lit_config.note(f"tests that need {os.path.basename(path)} are left out; build it by "
                        f"cmake --build {config.shoal_binary_dir} --target {target}, or everything without --target")
config.substitutions.append(("%pmpi_count", pmpi_count))

# A Python with PyTorch and Hugging Face's transformers, where there is one; what they compute is also recorded in
# EndToEnd/golden, so that their tests run without.
torch_python = os.environ.get("SHOAL_TORCH_PYTHON", config.python_executable)
found = subprocess.run([torch_python, "-c", "import importlib.util as u, sys; "
                        "sys.exit(not all(map(u.find_spec, ('torch', 'transformers', 'safetensors'))))"])
if found.returncode == 0:
    config.available_features.add("transformers")
    config.substitutions.insert(0, ("%python_transformers", torch_python))
else:
    lit_config.note("EndToEnd/huggingface_torch.test needs a Python with torch and transformers, named by "
                    "SHOAL_TORCH_PYTHON")

# The CUDA toolkit's assembler, where it is installed.
ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
