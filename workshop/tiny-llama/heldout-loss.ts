/**
 * Measures the committed model: bits per character over the last 5 % of its text, computed by node-llama-cpp,
 * the runtime that serves it. Exits with status 1 above the limit.
 *
 *     npx tsx workshop/tiny-llama/heldout-loss.ts [--text FILE] [--model FILE] [--limit BITS]
 *
 * Tokenizes the held-out text as one piece, in strides of 128 tokens. Scores each stride in a fresh window of
 * at most 255 tokens (the model's context is 256) that begins 128 tokens before the stride, so every held-out
 * token is scored exactly once, after 128 to 255 tokens of true context. The first window's context is the
 * end of the training text. Divides the sum of -log2(probability of the true token) by the characters.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { program } from 'commander'
import { execa } from 'execa'
import { getLlama, type LlamaContextSequence, type LlamaModel, type Token } from 'node-llama-cpp'

/** As in text.py: one character in this many, at the end of the text, is held out. */
const HELD_OUT_ONE_IN = 20
const CONTEXT_SIZE = 256
const STRIDE = 128
const CONTEXT_BEFORE = CONTEXT_SIZE - STRIDE
/** Characters to tokenize for the first window's context; more than 128 tokens need. */
const LEAD_CHARACTERS = 4096
const DEFAULT_LIMIT = 1.6

interface Options {
  text?: string
  model: string
  limit: number
}

function parseOptions(): Options {
  return program
    .description('Bits per character of the bundled model on the held-out text, in node-llama-cpp.')
    .option('--text <file>', 'the whole text as text.py writes it (default: run text.py)')
    .option(
      '--model <file>',
      'the GGUF to measure',
      fileURLToPath(new URL('../../model-store/tiny-llama/model.gguf', import.meta.url)),
    )
    .option('--limit <bits>', 'exit non-zero above this', Number, DEFAULT_LIMIT)
    .parse()
    .opts<Options>()
}

/** The text of a file, or of text.py, whose error message says what to install. */
async function readText(file: string | undefined): Promise<string> {
  if (file !== undefined) return readFile(file, 'utf8')
  const script = fileURLToPath(new URL('text.py', import.meta.url))
  const result = await execa('python3', [script], { reject: false, stripFinalNewline: false })
  if (result.failed)
    throw new Error(`text.py gave no text: ${result.stderr || (result.message ?? 'unknown')}`)
  return result.stdout
}

/** The last 5 % of the characters, and the text before. ASCII: one code unit per character. */
function split(text: string): { before: string; heldOut: string } {
  const cut = text.length - Math.floor(text.length / HELD_OUT_ONE_IN)
  return { before: text.slice(0, cut), heldOut: text.slice(cut) }
}

/** Tokens of the held-out text, preceded by exactly CONTEXT_BEFORE tokens of the text before it. */
function tokenize(model: LlamaModel, text: string): { tokens: Token[]; characters: number } {
  const { before, heldOut } = split(text)
  const lead = model.tokenize(before.slice(-LEAD_CHARACTERS)).slice(-CONTEXT_BEFORE)
  if (lead.length < CONTEXT_BEFORE) throw new Error('the text is too short to hold out a part of it')
  const scored = model.tokenize(heldOut)
  if (model.detokenize(scored) !== heldOut)
    throw new Error('the tokens of the held-out text do not give it back')
  return { tokens: [...lead, ...scored], characters: heldOut.length }
}

/** -log2 of the probability of each token of the stride at the end of `window`; the rest is context. */
async function strideBits(sequence: LlamaContextSequence, window: Token[]): Promise<number> {
  await sequence.clearHistory()
  const inputs = window.slice(0, -1)
  const outputs = await sequence.controlledEvaluate(
    inputs.map((token, index) =>
      index < CONTEXT_BEFORE - 1 ? token : [token, { generateNext: { probabilities: true } }],
    ),
  )
  let bits = 0
  for (let index = CONTEXT_BEFORE - 1; index < inputs.length; index++) {
    const probability = outputs[index]?.next.probabilities?.get(window[index + 1]!)
    if (probability === undefined) throw new Error('the runtime gave no probability for a token')
    bits -= Math.log2(probability)
  }
  return bits
}

async function totalBits(model: LlamaModel, tokens: Token[]): Promise<number> {
  // One thread: on a busy machine, several threads wait for each other up to a hundred times longer.
  const context = await model.createContext({
    contextSize: CONTEXT_SIZE,
    batchSize: CONTEXT_SIZE,
    threads: 1,
  })
  const sequence = context.getSequence()
  let bits = 0
  for (let start = CONTEXT_BEFORE; start < tokens.length; start += STRIDE)
    bits += await strideBits(sequence, tokens.slice(start - CONTEXT_BEFORE, start + STRIDE))
  await context.dispose()
  return bits
}

async function main(): Promise<void> {
  const options = parseOptions()
  const text = await readText(options.text)
  const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true })
  const model = await llama.loadModel({ modelPath: options.model })
  const { tokens, characters } = tokenize(model, text)
  const bits = (await totalBits(model, tokens)) / characters
  const scored = tokens.length - CONTEXT_BEFORE
  console.log(
    `held-out: ${bits.toFixed(3)} bits per character ` +
      `(${characters} characters, ${scored} tokens, context ${CONTEXT_SIZE})`,
  )
  await llama.dispose()
  // Negated, so that NaN fails too.
  if (!(bits <= options.limit)) {
    console.error(`above the limit of ${options.limit}`)
    process.exitCode = 1
  }
}

await main()
