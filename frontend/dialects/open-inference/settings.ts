import { isObject } from '../../../common/json.ts'
import type { Parameters } from '../../../common/tensors/tensor.ts'
import { isDeclaredTensor, isShape } from '../../models/declared-tensors.ts'
import type { ModelStatus } from '../../models/operations.ts'

/** One input or output in the metadata of a model. */
export interface TensorMetadata {
  name: string
  datatype: string
  /** -1 for a dimension of any size. */
  shape: number[]
  parameters?: Parameters
}

/**
 * How tensors reach a handler without tensor methods: `parts` as named parts of the request, `json` as the
 * whole request in JSON in one part `body` (for handlers that were written for TorchServe's kservev2
 * envelope).
 */
export type Mapping = 'parts' | 'json'

/**
 * Metadata and settings of a model for this protocol: section `openInference` of model-config.yaml, or
 * model-settings.json.
 */
export interface OpenInferenceSettings {
  platform: string
  /** Versions to report; empty: the registered versions. */
  versions: string[]
  inputs: TensorMetadata[]
  outputs: TensorMetadata[]
  /** Undefined: not configured. */
  mapping: Mapping | undefined
}

/** An input of a model as requests must have it. */
export interface DeclaredInput {
  readonly name: string
  readonly datatype: string
  /** Undefined: any. */
  readonly shape: readonly number[] | undefined
  /** Key `optional`, as in Triton's configuration: requests may lack it. */
  readonly optional: boolean
}

/** The inputs that section `openInference` of a model-config.yaml declares. */
export function declaredInputs(config: ModelStatus['config']): DeclaredInput[] {
  return declaredIn(sectionOf(config)['inputs']).map(({ name, datatype, shape, optional }) => ({
    name,
    datatype,
    shape: isShape(shape) ? shape : undefined,
    optional: optional === true,
  }))
}

/** Invalid metadata are ignored, because the model itself works without them. */
export function openInferenceSettings({ config }: Pick<ModelStatus, 'config'>): OpenInferenceSettings {
  const section = sectionOf(config)
  const { platform, versions, mapping } = section
  return {
    platform: typeof platform === 'string' ? platform : '',
    versions: Array.isArray(versions) ? versions.map(String) : [],
    inputs: tensorList(section['inputs']),
    outputs: tensorList(section['outputs']),
    mapping: mapping === 'json' || mapping === 'parts' ? mapping : undefined,
  }
}

function sectionOf(config: ModelStatus['config']): Record<string, unknown> {
  return isObject(config['openInference']) ? config['openInference'] : {}
}

function declaredIn(value: unknown) {
  return Array.isArray(value) ? value.filter(isDeclaredTensor) : []
}

function tensorList(value: unknown): TensorMetadata[] {
  return declaredIn(value).map(({ name, datatype, shape, parameters }) => ({
    name,
    datatype,
    shape: isShape(shape) ? shape : [-1],
    ...(isObject(parameters) && { parameters }),
  }))
}
