import { ServeError } from '../../../common/errors.ts'
import { isDatatype } from '../../../common/tensors/datatypes.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import type { ModelStatus } from '../../models/operations.ts'
import { declaredInputs, type DeclaredInput } from './settings.ts'

type Config = ModelStatus['config']
type SentInput = Pick<InferRequest['inputs'][number], 'name' | 'datatype' | 'shape'>

/** The inputs that a model declares, and what a request must look like to match them. */
export class InputCheck {
  readonly #declared: ReadonlyMap<string, DeclaredInput>
  readonly #required: readonly string[]

  constructor(declared: readonly DeclaredInput[]) {
    this.#declared = new Map(declared.map((input) => [input.name, input]))
    this.#required = declared.filter(({ optional }) => !optional).map(({ name }) => name)
  }

  /**
   * Each input must be declared and there once, with the declared datatype, rank and fixed dimensions; none
   * that is not optional may be missing.
   * @throws ServeError TENSOR_MISMATCH
   */
  check({ inputs }: Pick<InferRequest, 'inputs'>): void {
    for (const input of inputs) {
      const declared = this.#declared.get(input.name)
      if (declared === undefined)
        throw mismatch(`The model has no input ${brief(input.name)}; ${this.#all()}`)
      if (!fits(input, declared))
        throw mismatch(
          `Input ${brief(input.name)} must be ${written(declared)}, but the request has ${written(input)}`,
        )
    }
    this.#checkNames(inputs)
  }

  #checkNames(inputs: readonly SentInput[]): void {
    const names = inputs.length > 1 ? new Set(inputs.map(({ name }) => name)) : undefined
    if (names !== undefined && names.size < inputs.length) {
      const [twice] = inputs.filter(({ name }, at) => inputs.findIndex((each) => each.name === name) < at)
      throw mismatch(`Input ${brief(twice!.name)} must occur once, but the request has it several times`)
    }
    for (const name of this.#required) {
      if (names?.has(name) ?? inputs[0]?.name === name) continue
      const sent = inputs.length === 0 ? 'none' : inputs.map((each) => brief(each.name)).join(', ')
      const wanted = written(this.#declared.get(name)!)
      throw mismatch(`Input ${brief(name)} (${wanted}) is missing: the request has ${cut(sent)}`)
    }
  }

  #all(): string {
    const each = [...this.#declared.values()].map((input) => `${brief(input.name)} (${written(input)})`)
    return `it declares ${cut(each.join(', '))}`
  }
}

/** By the whole model-config.yaml, so that a request pays for one look. */
const checks = new WeakMap<Config, InputCheck | 'none'>()

/** Undefined: the model declares no inputs, or wants none checked (`validateInputs: false`). */
export function inputCheck({ config }: Pick<ModelStatus, 'config'>): InputCheck | undefined {
  let check = checks.get(config)
  if (check === undefined) {
    const declared = config['validateInputs'] === false ? [] : declaredInputs(config)
    check = declared.length === 0 ? 'none' : new InputCheck(declared)
    checks.set(config, check)
  }
  return check === 'none' ? undefined : check
}

/**
 * Lists in the data of a JSON tensor must have one length on each level, or there must be no lists in it.
 * @throws ServeError TENSOR_MISMATCH
 */
export function checkNesting(inputs: unknown): void {
  // What is no tensor at all, others have refused.
  for (const { name, data } of inputs as { name: string; data?: unknown }[]) {
    if (!Array.isArray(data) || !data.some(Array.isArray)) continue
    const uneven = unevenLevel(data as unknown[])
    if (uneven !== undefined)
      throw mismatch(
        `The data of input ${brief(name)} must be flat, or lists of one length, but on level ${uneven.level} ${uneven.found}`,
      )
  }
}

function unevenLevel(data: readonly unknown[]): { level: number; found: string } | undefined {
  let lists: readonly unknown[] = data
  for (let level = 2; lists.length > 0; level += 1) {
    const nested = lists.filter(Array.isArray) as unknown[][]
    if (nested.length === 0) return undefined
    if (nested.length < lists.length) return { level, found: 'there are lists beside values' }
    const length = nested[0]!.length
    const other = nested.find((list) => list.length !== length)
    if (other !== undefined) return { level, found: `one has ${length} and another ${other.length} elements` }
    lists = nested.flat(1)
  }
  return undefined
}

function fits(sent: SentInput, { datatype, shape }: DeclaredInput): boolean {
  // A datatype that is none of the protocol's is told when the model is registered.
  if (sent.datatype !== datatype && isDatatype(datatype)) return false
  if (shape === undefined) return true
  if (sent.shape.length !== shape.length) return false
  for (let i = 0; i < shape.length; i += 1) if (shape[i]! >= 0 && shape[i] !== sent.shape[i]) return false
  return true
}

function mismatch(message: string): ServeError {
  return new ServeError('TENSOR_MISMATCH', message)
}

/** Datatype and shape as in the metadata. */
function written({ datatype, shape }: { datatype: string; shape: readonly number[] | undefined }): string {
  return shape === undefined ? `${datatype} of any shape` : `${datatype} [${shape.join(',')}]`
}

function brief(name: string): string {
  return `"${name.slice(0, 200)}"`
}

function cut(text: string): string {
  return text.length <= 1_000 ? text : `${text.slice(0, 1_000)} ...`
}
