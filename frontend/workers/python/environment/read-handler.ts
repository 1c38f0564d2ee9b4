import { tmpdir } from 'node:os'
import { delimiter } from 'node:path'
import { execa } from 'execa'
import { ServeError } from '../../../../common/errors.ts'
import type { PythonEnvironment } from './environment.ts'
import { HANDLER_SCRIPT, type HandlerFindings } from './handler-script.ts'

const LIMIT_MS = 60_000

/**
 * Reads the source of a model's handler with the interpreter that would run it. Nothing of the model is run.
 * @param handler as in the manifest
 * @throws ServeError INTERNAL
 */
export async function readHandler(
  { python, torchserve, packages }: PythonEnvironment,
  modelDir: string,
  handler: string,
): Promise<HandlerFindings> {
  const pythonPath = [process.env['PYTHONPATH'], packages].filter((part) => part).join(delimiter)
  const { stdout, stderr, failed } = await execa(
    python,
    ['-c', HANDLER_SCRIPT, modelDir, handler, torchserve],
    {
      ...{ env: { PYTHONPATH: pythonPath, PYTHONDONTWRITEBYTECODE: '1' }, cwd: tmpdir(), reject: false },
      ...{ timeout: LIMIT_MS, forceKillAfterDelay: 1000, stdin: 'ignore' },
    },
  )
  if (failed) throw new ServeError('INTERNAL', `Handler ${handler} could not be read`, { detail: stderr })
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as HandlerFindings
}
