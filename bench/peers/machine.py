"""What a result says of the machine, the build and the moment."""
import datetime
import os
import platform
import subprocess


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def field(path, name):
    for line in (read(path) or "").splitlines():
        if line.startswith(name):
            return line.split(":", 1)[1].strip()
    return None


def output(command, folder=None):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True,
                              timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def load_average():
    return round(os.getloadavg()[0], 2)


def facts():
    cores = sorted(os.sched_getaffinity(0))
    gpus = output(["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm",
                   "--format=csv,noheader"]) if os.path.exists("/proc/driver/nvidia") else ""
    return {
        "cpu": field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "allowed_cores": len(cores),
        "memory_mb": round(int((field("/proc/meminfo", "MemTotal") or "0").split()[0]) * 1024e-6),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unreadable",
        "kernel": platform.release(),
        "gpus": gpus.splitlines(),
    }


def commit(folder):
    """The commit of the source, "+changes" where files differ from it."""
    name = output(["git", "rev-parse", "HEAD"], folder) or "unknown"
    changed = output(["git", "status", "--porcelain", "--untracked-files=no"], folder)
    return name + ("+changes" if changed else "")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
