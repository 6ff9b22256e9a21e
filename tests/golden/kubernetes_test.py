"""The manifest of `heddle sweep --backend kubernetes` is what Kubernetes' own schema accepts (PyPI kubernetes-validate)."""

import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import kubernetes_validate
    import yaml
except ImportError:
    kubernetes_validate = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEDDLE = os.environ["HEDDLE"]


@unittest.skipIf(kubernetes_validate is None, "kubernetes-validate is not installed (tools/requirements.txt)")
class Kubernetes(unittest.TestCase):
    def manifest(self, folder, *options):
        command = [HEDDLE, "sweep", "-a", "a100_sxm4_80gb", "-T", str(ROOT / "traces/softmax.sm_80.htrace"),
                   "-x", "sm.count=96,108,120", "--db", f"{folder}/s.db", "--backend", "kubernetes",
                   "--image", "registry/heddle:1", "--volume-claim", "sweeps", "--volume-mount", folder, *options]
        path = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        return list(yaml.safe_load_all(pathlib.Path(path).read_text()))

    def test_schema_accepts_both_jobs(self):
        with tempfile.TemporaryDirectory() as folder:
            documents = self.manifest(folder, "--jobs", "2")
            self.assertEqual([d["metadata"]["name"] for d in documents], ["heddle-sweep", "heddle-sweep-merge"])
            for document in documents:
                kubernetes_validate.validate(document, "1.31", strict=True)
            spec = documents[0]["spec"]
            self.assertEqual((spec["completionMode"], spec["completions"], spec["parallelism"]), ("Indexed", 3, 2))

    def test_schema_would_notice(self):
        with tempfile.TemporaryDirectory() as folder:
            document = self.manifest(folder)[0]
            document["spec"]["completions"] = "three"
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(document, "1.31", strict=True)


if __name__ == "__main__":
    unittest.main()
