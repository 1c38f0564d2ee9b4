import { ServeError } from '../../../../common/errors.ts'
import type { NeededModule, Probe } from './probe.ts'

/** PyPI names of packages that are imported under another name. */
const PACKAGES: Readonly<Record<NeededModule, string>> = {
  ts: 'torchserve',
  torch: 'torch',
  yaml: 'pyyaml',
  psutil: 'psutil',
}

/**
 * @param failures `<command>: <reason>`
 * @param cause why the last one could not be started; undefined: it was
 */
export function missingInterpreter(failures: readonly string[], cause: Error | undefined): ServeError {
  return new ServeError(
    'WORKER_START_FAILED',
    `No Python was found to run Python models (${failures.join('; ')}). ` +
      'Install Python 3 and name it in config.properties, like python=/usr/bin/python3.',
    { cause },
  )
}

export function missingPackages({ python, version, missing }: Probe): ServeError {
  const packages = missing.map((module) => PACKAGES[module])
  return new ServeError(
    'WORKER_START_FAILED',
    `Python ${version} at ${python} lacks what TorchServe's worker needs: ${packages.join(', ')}. ` +
      `Install it with: ${installCommand(python, packages)} ` +
      '(or name another Python in config.properties, key python).',
  )
}

function installCommand(python: string, packages: readonly string[]): string {
  const path = /\s/.test(python) ? `"${python}"` : python
  return `${path} -m pip install ${packages.join(' ')}`
}
