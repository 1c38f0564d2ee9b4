import { type Fields, record } from './record.ts'

/** Settings of Seldon's local runtime, translated for this handler (docs/openai.md). */
export interface SeldonSettings {
  /** Keys of the section `handler` of model-config.yaml. */
  config: Fields
  /** Folder or file of the weights; undefined: the model's own folder. */
  uri: string | undefined
  /** Settings without effect, one line each. */
  warnings: string[]
}

const WHERE = 'parameters.extra in model-settings.json'
const BACKENDS = ['vllm', 'deepspeed', 'transformers']
const MODEL_TYPES = ['chat.completions', 'completions', 'embeddings']
const GPUS: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([
  ['cpu', false],
  ['cuda', 'cuda'],
  ['auto', 'auto'],
])

/** Seldon's names for the handler's keys, in model_settings and in its default_generate_kwargs. */
const KEYS: ReadonlyMap<string, string> = new Map([
  ['model', 'model_path'],
  ['max_model_len', 'context_size'],
  ['max_num_seqs', 'sequences'],
  ['repetition_penalty', 'repeat_penalty'],
])
const OWN = [
  ...['model_path', 'context_size', 'sequences', 'threads', 'gpu', 'gpu_layers', 'chat_template'],
  ...['max_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'repeat_penalty'],
]
const KNOWN_IN_EXTRA = ['backend', 'config', 'prompt_utils']
const KNOWN_IN_CONFIG = ['model_type', 'model_settings']
const HANDLED = ['device', 'tensor_parallel_size', 'default_generate_kwargs']

/**
 * Reads `{ backend, config: { model_type, model_settings } }` of a model-settings.json (Seldon's LLM module,
 * "Local"). Ignores which backend it names.
 * @throws Error that names the key, for settings that are not supported
 */
export function seldonSettings(modelConfig: Readonly<Fields>): SeldonSettings {
  const parameters = record(record(modelConfig['modelSettings'])['parameters'])
  const extra = record(parameters['extra'])
  const settings = record(record(extra['config'])['model_settings'])
  const kwargs = record(settings['default_generate_kwargs'])
  refuse(extra, settings)
  const given = { ...kwargs, ...settings }
  const known = new Map<string, unknown>()
  const idle: string[] = []
  for (const [key, value] of Object.entries(given)) {
    const own = KEYS.get(key) ?? key
    if (HANDLED.includes(key) || value === null) continue
    if (OWN.includes(own)) known.set(own, value)
    else idle.push(key)
  }
  if (settings['device'] !== undefined) known.set('gpu', gpuOf(settings['device']))
  const backend = extra['backend']
  const warnings = [...unknown(extra), ...idle].map((key) => `${WHERE}: ${key} has no effect here`)
  if (backend !== undefined)
    warnings.unshift(`${WHERE}: backend ${shown(backend)} is replaced by node-llama-cpp`)
  const uri = typeof parameters['uri'] === 'string' ? parameters['uri'] : undefined
  return { config: Object.fromEntries(known), uri, warnings }
}

/** Other keys with a value. */
function unknown(extra: Fields): string[] {
  const others = (fields: Fields, known: string[]): string[] =>
    Object.entries(fields).flatMap(([key, value]) => (known.includes(key) || value === null ? [] : [key]))
  return [
    ...others(extra, KNOWN_IN_EXTRA),
    ...others(record(extra['config']), KNOWN_IN_CONFIG).map((key) => `config.${key}`),
  ]
}

function refuse(extra: Fields, settings: Fields): void {
  const { backend, prompt_utils: prompts } = extra
  const type = record(extra['config'])['model_type']
  const { model, tensor_parallel_size: parallel } = settings
  if (backend !== undefined && !BACKENDS.includes(shown(backend)))
    throw new Error(`${WHERE}: backend must be one of ${BACKENDS.join(', ')}`)
  if (type !== undefined && !MODEL_TYPES.includes(shown(type)))
    throw new Error(`${WHERE}: model_type must be one of ${MODEL_TYPES.join(', ')}`)
  if (prompts !== undefined && prompts !== null)
    throw new Error(`${WHERE}: prompt_utils is not supported; use config.model_settings.chat_template`)
  if (model !== undefined && !/\.gguf$/i.test(shown(model)))
    throw new Error(`${WHERE}: model must name a .gguf file, found ${shown(model)}`)
  if (parallel !== undefined && parallel !== 1) throw new Error(`${WHERE}: tensor_parallel_size must be 1`)
}

function gpuOf(device: unknown): unknown {
  if (GPUS.has(device)) return GPUS.get(device)
  throw new Error(`${WHERE}: device must be one of ${[...GPUS.keys()].join(', ')}`)
}

function shown(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200)
}
