"""The arithmetic and the table of bench/peers/run: rows of ours against a peer. Pure functions."""
import statistics


def median(values):
    return statistics.median(values) if values else None


def best_setting(rounds):
    """rounds: one {setting: value, higher is better} per round. The setting with the highest median
    of those that every round has, and its values; (None, []) without any."""
    if not rounds:
        return None, []
    common = set(rounds[0]).intersection(*rounds[1:])
    if not common:
        return None, []
    name = max(sorted(common), key=lambda s: statistics.median(r[s] for r in rounds))
    return name, [r[name] for r in rounds]


def efficiency(together, first, second):
    """Images/s of two ranks that train together by those of two that don't know of each other."""
    return together / (first + second)


def row(what, unit, ours, peer_name, peer, wanted=None, skipped=None, note=None):
    """ours, peer: the values of all rounds. wanted: (">=" or "<=", ratio ours / peer), or with a
    third word "ours" a bound on our value itself."""
    result = {"what": what, "unit": unit, "ours": median(ours), "ours_rounds": list(ours),
              "peer_name": peer_name, "peer": median(peer), "peer_rounds": list(peer),
              "ratio": None, "wanted": None,
              "reached": None, "skipped": skipped, "note": note}
    if ours and peer and result["peer"]:
        result["ratio"] = result["ours"] / result["peer"]
    elif skipped is None:
        result["skipped"] = "no result"
    if wanted:
        relation, bound, *of_ours = wanted
        result["wanted"] = f"{relation} {bound:.3g}" + (f" {unit}".rstrip() + ", ours" if of_ours
                                                        else "")
        value = result["ours"] if of_ours else result["ratio"]
        if value is not None:
            result["reached"] = value >= bound if relation == ">=" else value <= bound
    return result


def number(value):
    if value is None:
        return "–"
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def table(rows):
    """A Markdown table; the ratio is ours / peer."""
    lines = ["| what | unit | ours | peer | | ours / peer | wanted | |",
             "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        verdict = {True: "reached", False: "**not reached**", None: ""}[r["reached"]]
        if r["skipped"]:
            verdict = "; ".join(filter(None, [verdict, "skipped: " + r["skipped"]]))
        lines.append(f"| {r['what']} | {r['unit']} | {number(r['ours'])} | {r['peer_name']} "
                     f"| {number(r['peer'])} | {number(r['ratio'])} | {r['wanted'] or ''} "
                     f"| {verdict} |")
    return "\n".join(lines) + "\n"


def differing_facts(first, second):
    """Names of the machine's facts by which two results must not be compared; load is expected to
    differ and is left to the reader."""
    ignored = {"load_average"}
    names = (set(first) | set(second)) - ignored
    return sorted(n for n in names if first.get(n) != second.get(n))
