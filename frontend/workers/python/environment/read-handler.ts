import { ServeError } from '../../../../common/errors.ts'
import type { PythonEnvironment } from './environment.ts'
import { HANDLER_SCRIPT, type HandlerFindings } from './handler-script.ts'
import { askPython, lastLine } from './own-python.ts'

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
  const args = [modelDir, handler, torchserve]
  const { stdout, stderr, problem } = await askPython(python, HANDLER_SCRIPT, args, packages)
  if (problem !== undefined)
    throw new ServeError('INTERNAL', `Handler ${handler} could not be read: ${problem}`, { detail: stderr })
  return JSON.parse(lastLine(stdout)!) as HandlerFindings
}
