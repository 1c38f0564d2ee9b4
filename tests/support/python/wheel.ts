import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zipOf } from '../zip.ts'

/** Writes a Python package of one module, which pip installs without a network. @returns the file's name */
export async function writeWheel(
  folder: string,
  name: string,
  version: string,
  source: string,
): Promise<string> {
  const info = `${name}-${version}.dist-info`
  const file = `${name}-${version}-py3-none-any.whl`
  const wheel = await zipOf({
    [`${name}.py`]: source,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${info}/RECORD`]: [`${name}.py,,`, `${info}/METADATA,,`, `${info}/WHEEL,,`, `${info}/RECORD,,`].join(
      '\n',
    ),
  })
  writeFileSync(join(folder, file), wheel)
  return file
}
