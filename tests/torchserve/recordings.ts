import { createHash } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Responses of one network, by the SHA-256 of the input (for a text generator: by the prompt): the content of
 * answers.json.
 */
export type Answers = Record<string, { predict?: unknown; explain?: unknown }>

interface DataItem {
  url?: string
  workflow_url?: string
  file?: string
  expected?: unknown
  expected_explain?: unknown
}

/** The networks of a workflow that answer instead of it. */
const WORKFLOW_NETWORKS: Readonly<Record<string, string>> = {
  densenet_wf: 'densenet161',
  dog_breed_wf: 'dog_breed_classification',
}
const CAT_OR_DOG = 'cat_dog_classification'
const DIGITS = 'examples/image_classifier/mnist/test_data'

export interface Recordings {
  /** By the name of the archive, without its ending. */
  readonly answers: ReadonlyMap<string, Answers>
  /** Archives that the collections expect in the model store. */
  readonly inStore: readonly string[]
}

/**
 * The expected responses in the data files of TorchServe's collections per archive, the digits of its MNIST
 * pictures (a picture's name is its digit), and the completions that a test expects of GPT-2.
 */
export async function readRecordings(checkout: string): Promise<Recordings> {
  const postman = join(checkout, 'test', 'postman')
  const paths = await archivePaths(postman)
  const inStore = [...paths.values()].map(archiveName)
  const recordings = new Map<string, Answers>(inStore.map((name) => [name, {}]))
  for (const file of (await readdir(postman)).filter((name) => /(_data|_inference)\.json$/.test(name))) {
    for (const item of await readItems(join(postman, file))) await record(recordings, paths, item, postman)
  }
  for (const [name, answers] of recordings)
    if (name.startsWith('mnist')) note(recordings, name, await digits(checkout, answers))
  note(recordings, 'streaming_handler', await completions(checkout))
  return { answers: recordings, inStore: [...inStore, CAT_OR_DOG, WORKFLOW_NETWORKS['dog_breed_wf']!] }
}

/** `mar_path_X` of the environment -> location. */
async function archivePaths(postman: string): Promise<Map<string, string>> {
  const text = await readFile(join(postman, 'environment.json'), 'utf8')
  const { values } = JSON.parse(text) as { values: { key: string; value: string }[] }
  return new Map(
    values.filter(({ key }) => key.startsWith('mar_path_')).map(({ key, value }) => [key, value]),
  )
}

async function readItems(path: string): Promise<DataItem[]> {
  return JSON.parse(await readFile(path, 'utf8')) as DataItem[]
}

async function record(
  recordings: Map<string, Answers>,
  paths: Map<string, string>,
  { url, workflow_url: workflow, file, expected: predict, expected_explain: explain }: DataItem,
  postman: string,
): Promise<void> {
  const input = join(postman, '..', file ?? '')
  const name =
    workflow !== undefined
      ? WORKFLOW_NETWORKS[archiveName(workflow)]
      : url && archiveName(paths.get(url.replace(/[{}]/g, '')) ?? url)
  if (name === undefined || file === undefined || !existsSync(input)) return
  const key = await sha256(input)
  note(recordings, name, { [key]: { predict, explain }, ...(await insideEnvelope(input, predict, explain)) })
  if (name === WORKFLOW_NETWORKS['dog_breed_wf']) note(recordings, CAT_OR_DOG, { [key]: { predict: 'dog' } })
}

/**
 * With a request envelope the network gets the rows of a KServe request, and its outputs are in the response.
 */
async function insideEnvelope(path: string, predict: unknown, explain: unknown): Promise<Answers> {
  if (!path.endsWith('.json') || outputs(predict) === undefined) return {}
  const request = JSON.parse(await readFile(path, 'utf8')) as Record<string, { data: unknown }[]>
  const rows = request['instances'] ?? request['inputs'] ?? []
  const entries = rows.map(({ data }, i): [string, Answers[string]] => [
    digest(typeof data === 'string' ? data : JSON.stringify(data)),
    { predict: outputs(predict)?.[i], explain: outputs(explain)?.[i] },
  ])
  return Object.fromEntries(entries)
}

/** What an envelope holds; undefined: the answer is not in one. */
function outputs(answer: unknown): unknown[] | undefined {
  const { predictions, explanations, outputs: tensors } = (answer ?? {}) as Record<string, unknown[]>
  return predictions ?? explanations ?? tensors?.map((tensor) => (tensor as { data: unknown }).data)
}

function note(recordings: Map<string, Answers>, name: string, answers: Answers): void {
  recordings.set(name, { ...recordings.get(name), ...answers })
}

function archiveName(location: string): string {
  return location.slice(location.lastIndexOf('/') + 1).replace(/\.(mar|war|tar\.gz)$/, '')
}

/** The completions that test_continuous_batching.py expects, by prompt. */
async function completions(checkout: string): Promise<Answers> {
  const source = await readFile(join(checkout, 'test/pytest/test_continuous_batching.py'), 'utf8').catch(
    () => '',
  )
  const prompts = [...source.matchAll(/"prompt": "([^"]+)"/g)].map(([, prompt]) => prompt!)
  const expected = [...source.matchAll(/all_predictions\[(\d+)\]\s*==\s*"([^"]+)"/g)]
  return Object.fromEntries(expected.map(([, number, text]) => [prompts[Number(number)]!, { predict: text }]))
}

async function digits(checkout: string, known: Answers): Promise<Answers> {
  const pictures = (await readdir(join(checkout, DIGITS))).filter((name) => /^\d\.png$/.test(name))
  const entries = pictures.map(async (name): Promise<[string, Answers[string]]> => {
    const key = await sha256(join(checkout, DIGITS, name))
    return [key, { ...known[key], predict: name.charAt(0) }]
  })
  return Object.fromEntries(await Promise.all(entries))
}

async function sha256(path: string): Promise<string> {
  return digest(await readFile(path))
}

function digest(input: string | Buffer): string {
  return createHash('sha256').update(input).digest('hex')
}
