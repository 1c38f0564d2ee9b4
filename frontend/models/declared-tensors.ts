import { isObject } from '../../common/json.ts'
import { DATATYPE_NAMES, isDatatype } from '../../common/tensors/datatypes.ts'
import type { ConfigReader } from './config-reader.ts'

const SECTION = 'openInference'

/** An entry of the lists `inputs` and `outputs` that can be used. */
interface DeclaredTensor extends Record<string, unknown> {
  name: string
  datatype: string
}

/**
 * Warns about what is wrong in section `openInference` and in `validateInputs` of a model-config.yaml, which
 * the dialect reads.
 */
export function warnOfTensors(reader: ConfigReader): void {
  reader.boolean('validateInputs')
  const section = reader.section(SECTION)
  if (section === undefined) return
  section.text('platform')
  section.word('mapping', ['parts', 'json'])
  const lists = ['inputs', 'outputs'].flatMap((key) => tensorWarnings(key, section.any(key)))
  section.any('versions')
  section.misspelt()
  reader.warnings.push(...[...section.warnings, ...lists].map((warning) => `${SECTION}: ${warning}`))
}

function tensorWarnings(key: string, value: unknown): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) return [`${key} must be a list; it is ignored`]
  return value.flatMap((each: unknown, at) => {
    const what = `${key}[${at}]`
    if (!isDeclaredTensor(each)) return [`${what} must have a name and a datatype; it is ignored`]
    const { name, datatype, shape } = each
    const warnings: string[] = []
    if (!isDatatype(datatype))
      warnings.push(
        `datatype of ${what} (${name}) must be one of ${DATATYPE_NAMES.join(', ')}, found ${datatype}; it is not checked`,
      )
    if (shape !== undefined && shape !== null && !isShape(shape))
      warnings.push(
        `shape of ${what} (${name}) must be a list of integers, -1 for any size, found ${JSON.stringify(shape)}; ` +
          'it is not checked',
      )
    return warnings
  })
}

/** Whether an entry of section `openInference` counts: it has a name and a datatype. */
export function isDeclaredTensor(value: unknown): value is DeclaredTensor {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['datatype'] === 'string'
}

/** Whether a declared shape counts: integers, -1 for any size. */
export function isShape(shape: unknown): shape is number[] {
  return Array.isArray(shape) && shape.every(Number.isSafeInteger)
}
