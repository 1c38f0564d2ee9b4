import { sep } from 'node:path'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { packageRoot, serverModules } from '../../model-archiver/package-root.ts'
import { fillWrapper } from '../config/worker-wrapper.ts'

/** A program that runs a model's code, and its arguments. */
export interface Program {
  readonly command: string
  readonly args: readonly string[]
}

/**
 * The program behind the wrapper of its model (docs/worker-wrapper.md).
 * @param wrapper words with placeholders, from the server's configuration; none: no wrapper
 * @param workerDir the folder that the program writes to
 */
export function wrapped(
  { command, args }: Program,
  wrapper: readonly string[],
  { modelDir, workDir }: Pick<PreparedModel, 'modelDir' | 'workDir'>,
  workerDir: string,
): Program {
  const [program, ...options] = fillWrapper(wrapper, {
    ...{ model_dir: modelDir, work_dir: workDir, worker_dir: workerDir },
    server_dir: serverDir(),
  })
  return program === undefined
    ? { command, args }
    : { command: program, args: [...options, command, ...args] }
}

/** The folder that contains the server's package and the packages that it uses. */
function serverDir(): string {
  const root = packageRoot()
  const modules = serverModules(root)
  return modules !== undefined && root.startsWith(modules + sep) ? modules : root
}
