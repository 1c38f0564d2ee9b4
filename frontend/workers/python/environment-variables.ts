import { realpathSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import type { Settings } from '../../config/settings.ts'
import type { Model } from '../../models/model.ts'
import type { PythonEnvironment } from './environment/environment.ts'

/** The environment of TorchServe's worker besides the inherited variables (EnvironmentUtils.java). */
export function pythonVariables(
  model: Model,
  settings: Settings,
  python: PythonEnvironment,
): Record<string, string> {
  const { id, start, end } = model.sequenceHeaders
  return {
    TS_DECODE_INPUT_REQUEST: String(settings.decodeInputRequest),
    TS_IPEX_ENABLE: String(settings.ipexEnable),
    TS_IPEX_GPU_ENABLE: String(settings.ipexGpuEnable),
    // The header names that the handler's context uses. TorchServe's frontend does not pass on its own.
    TS_REQUEST_SEQUENCE_ID: id,
    TS_REQUEST_SEQUENCE_START: start,
    TS_REQUEST_SEQUENCE_END: end,
    PYTHONPATH: pythonPath(model, python),
  }
}

function pythonPath({ prepared }: Model, { torchserve, packages }: PythonEnvironment): string {
  const { handler = '' } = prepared.manifest.model
  const parts = [
    handler.includes(':') ? handlerFolder(handler) : undefined,
    process.env['PYTHONPATH'],
    realpathSync(prepared.modelDir),
    packages,
    /site-packages|dist-packages/.test(torchserve) ? undefined : torchserve,
  ]
  return parts.filter((part) => part !== undefined && part !== '').join(delimiter)
}

/** For `/home/me/handlers.py:predict`: the folder. */
function handlerFolder(handler: string): string | undefined {
  const [file = ''] = handler.split(':')
  return file.includes('/') ? dirname(file) : undefined
}
