import { WORKER_PATH } from './own-python.ts'

/**
 * A Python program that reads a handler's source without running it. Arguments: the model's folder, the
 * handler as in the manifest, the folder of TorchServe's package. It prints one JSON object, see {@link
 * HandlerFindings}.
 *
 * It follows imports at the top of modules, through the archive and TorchServe's own modules. It ignores
 * imports in functions, `try` and `if`, which may be meant for other machines.
 */
export const HANDLER_SCRIPT = `${WORKER_PATH}
import ast, importlib.machinery, importlib.util, json

MAX_FILES, MAX_BYTES = 500, 4000000
folder, handler, home = sys.argv[1:4]
see_as_worker()
sys.path[:] = [folder] + sys.path + [home]
name, _, function = handler.partition(":")
module = name.replace("\\\\", "/").split("/")[-1]
module = module[:-3] if module.endswith(".py") else module
found = {"file": None, "stock": False, "entry": "found", "broken": [], "missing": {}}

def spec(name):
    # find_spec of a dotted name would import its parents.
    path, *others = name.split(".")
    try:
        found = importlib.util.find_spec(path)
        folders = list(found.submodule_search_locations) if others else []
        for part in others:
            path += "." + part
            found = importlib.machinery.PathFinder.find_spec(path, folders)
            folders = [os.path.join(folder, part) for folder in folders]
        return found
    except Exception:
        return None

def followed(path):
    inside = lambda root: os.path.realpath(path).startswith(os.path.realpath(root) + os.sep)
    return path.endswith(".py") and (inside(folder) or inside(os.path.join(home, "ts")))

def shown(path):
    real = os.path.realpath(path)
    root = folder if real.startswith(os.path.realpath(folder) + os.sep) else home
    return os.path.relpath(real, os.path.realpath(root))

def parse(path):
    try:
        if os.path.getsize(path) > MAX_BYTES:
            return None
        with open(path, "rb") as file:
            return ast.parse(file.read(), path)
    except (SyntaxError, ValueError) as error:
        found["broken"].append("%s: %s (line %s)" % (shown(path), getattr(error, "msg", error), getattr(error, "lineno", "?")))
    except OSError:
        pass
    return None

def imported(tree, package):
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join(above + ([node.module] if node.module else []))
            if base:
                yield base

def locate(name):
    # Only the source of the archive and of TorchServe: find_spec of a dotted name would import its parents.
    for root in (folder, home):
        path = os.path.join(root, *name.split("."))
        for file in (path + ".py", os.path.join(path, "__init__.py")):
            if os.path.isfile(file) and followed(file):
                return file
    return None

def walk(start, package):
    todo, seen = [(start, package)], set()
    while todo and len(seen) < MAX_FILES:
        path, package = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        tree = parse(path)
        for name in imported(tree, package) if tree else []:
            file = locate(name)
            inner = name if file and file.endswith("__init__.py") else name.rpartition(".")[0]
            if file:
                todo.append((file, inner))
            elif spec(name.split(".")[0]) is None:
                found["missing"].setdefault(name.split(".")[0], shown(path))

def entry(tree, wanted):
    # As TorchServe's model_loader looks. A name inside an if or a try may exist, so it counts as found.
    classes = set()
    for node in tree.body:
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.Delete)):
            return "found"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == wanted:
            return "found"
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {getattr(each, "id", None) for each in targets}
            if None in names or wanted in names or names & classes:
                return "found"
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) in ("*", wanted) for each in node.names):
            return "found"
        if isinstance(node, ast.ClassDef):
            if node.decorator_list:
                return "found"
            classes.add(node.name)
    return ("none", "found", "several")[min(len(classes), 2)]

own = spec(module)
stock = os.path.join(home, "ts", "torch_handler", module + ".py")
if own is not None and own.origin and own.origin not in ("built-in", "frozen"):
    found["file"] = own.origin
    package = module if os.path.basename(own.origin) == "__init__.py" else module.rpartition(".")[0]
    walk(own.origin, package)
    parents = package.split(".") if package else []
    for count in range(1, len(parents) + 1):
        file = locate(".".join(parents[:count]))
        if file:
            walk(file, ".".join(parents[:count]))
    tree = parse(own.origin) if not found["broken"] else None
    found["entry"] = "found" if tree is None else entry(tree, function or "handle")
elif os.path.isfile(stock):
    found["file"], found["stock"] = stock, True
    walk(stock, "ts.torch_handler")
print("\\n" + json.dumps(found))
`

/** What reading a handler's source showed. */
export interface HandlerFindings {
  /** The file; null: it is neither in the archive nor in TorchServe. */
  readonly file: string | null
  /** Whether it is one of TorchServe's own handlers. */
  readonly stock: boolean
  /** Whether there is one class, or the function. `found` also when only running the module would tell. */
  readonly entry: 'found' | 'none' | 'several'
  /** Files that this interpreter cannot parse. */
  readonly broken: readonly string[]
  /** Top-level modules that were not found, each with the file that imports it. */
  readonly missing: Readonly<Record<string, string>>
}
