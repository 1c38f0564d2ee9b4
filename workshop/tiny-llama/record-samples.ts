/**
 * Writes samples.md: what the committed model says to a few prompts through node-llama-cpp.
 *
 *     npx tsx workshop/tiny-llama/record-samples.ts
 */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { getLlama, LlamaCompletion, type LlamaContext } from 'node-llama-cpp'

const CONTEXT_SIZE = 256
const MAX_TOKENS = 160

interface Request {
  prompt: string
  temperature: number
  seed: number
}

const REQUESTS: Request[] = [
  { prompt: 'In the beginning', temperature: 0, seed: 1 },
  { prompt: 'And the king said unto the woman,', temperature: 0, seed: 1 },
  { prompt: 'In the beginning', temperature: 0.8, seed: 2 },
  { prompt: 'And Jesus went up into the mountain', temperature: 0.8, seed: 3 },
  { prompt: 'The wise man', temperature: 0.8, seed: 4 },
]

async function complete(context: LlamaContext, request: Request): Promise<string> {
  const sequence = context.getSequence()
  const completion = new LlamaCompletion({ contextSequence: sequence })
  const { prompt, temperature, seed } = request
  const text = await completion.generateCompletion(prompt, { maxTokens: MAX_TOKENS, temperature, seed })
  await sequence.dispose()
  return text
}

function section(request: Request, text: string, number: number): string {
  const body = (request.prompt + text).trimEnd()
  return `## Sample ${number}

- prompt: \`${request.prompt}\`
- temperature: ${request.temperature}
- seed: ${request.seed}${request.temperature === 0 ? ' (without effect at temperature 0)' : ''}

\`\`\`text
${body}
\`\`\`
`
}

async function main(): Promise<void> {
  const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true })
  const modelPath = fileURLToPath(new URL('../../model-store/tiny-llama/model.gguf', import.meta.url))
  const model = await llama.loadModel({ modelPath })
  const context = await model.createContext({ contextSize: CONTEXT_SIZE, threads: 1 })
  const sections = []
  for (const [index, request] of REQUESTS.entries())
    sections.push(section(request, await complete(context, request), index + 1))
  const head = `# Samples

What \`model.gguf\` says through node-llama-cpp 3.21.1, written by \`workshop/tiny-llama/record-samples.ts\`: ${MAX_TOKENS} tokens
each, the prompt first, one verse per line. Nothing was chosen or mended.
`
  await writeFile(
    fileURLToPath(new URL('../../model-store/tiny-llama/samples.md', import.meta.url)),
    [head, ...sections].join('\n'),
  )
  await llama.dispose()
}

await main()
