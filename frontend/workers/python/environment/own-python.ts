import { delimiter } from 'node:path'
import { type ProgramRun, runProgram } from '../../../../common/start-program.ts'
import { packageRoot } from '../../../../model-archiver/package-root.ts'

/** An interpreter starts in milliseconds, but may take long on a cold network disk. */
const LIMIT_MS = 60_000

/**
 * The arguments of every Python that the server starts for itself. `-I` keeps modules of the current folder,
 * which another user may have put there, away from the standard library's names.
 */
export function isolated(args: readonly string[]): string[] {
  return ['-I', ...args]
}

/**
 * The beginning of a script. `-I` also leaves out PYTHONPATH and the packages of the user, which a worker
 * has: `user_packages()` returns the folder of these, or none; `see_as_worker()` adds both to `sys.path`.
 */
export const WORKER_PATH = `
import os, site, sys

def user_packages():
    if os.environ.get("PYTHONNOUSERSITE"):
        return None
    if sys.prefix != sys.base_prefix:
        with open(os.path.join(sys.prefix, "pyvenv.cfg")) as file:
            if "include-system-site-packages=true" not in file.read().lower().replace(" ", ""):
                return None
    folder = site.getusersitepackages()
    return folder if os.path.isdir(folder) else None

def see_as_worker():
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    at = next((at for at, path in enumerate(sys.path) if path in site.getsitepackages()), len(sys.path))
    packages, sys.path[at:] = sys.path[at:], []
    user = user_packages()
    if user:
        site.addsitedir(user)
    sys.path[:] = [path for path in named if os.path.isabs(path)] + sys.path + packages
`

/**
 * Runs a script of the server with an interpreter, in a folder of the server. Never rejects.
 * @param packages folder of packages that the workers get in addition to those of the interpreter
 */
export function askPython(
  python: string,
  script: string,
  args: readonly string[],
  packages: string | undefined,
): Promise<ProgramRun> {
  const pythonPath = [process.env['PYTHONPATH'], packages].filter((part) => part).join(delimiter)
  return runProgram(python, isolated(['-B', '-c', script, ...args]), {
    cwd: packageRoot(),
    env: { ...process.env, PYTHONPATH: pythonPath },
    timeoutMs: LIMIT_MS,
  })
}

/** The last line of what it printed: interpreters may print others before it. */
export function lastLine(text: string): string | undefined {
  return text.trimEnd().split('\n').at(-1)?.trim() || undefined
}
