import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './package-root.ts'

/**
 * `dd/mm/yyyy HH:MM:SS`, as TorchServe writes it. SOURCE_DATE_EPOCH (seconds) fixes it for reproducible
 * archives.
 */
export function createdOn(): string {
  const epoch = Number(process.env['SOURCE_DATE_EPOCH'] ?? NaN)
  const [date, time] = new Date(Number.isFinite(epoch) ? epoch * 1000 : Date.now()).toISOString().split('T')
  return `${date!.split('-').reverse().join('/')} ${time!.slice(0, 8)}`
}

/** Version of this package, for archiverVersion in manifests. */
export function ownVersion(): string {
  const json = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }
  return json.version
}
