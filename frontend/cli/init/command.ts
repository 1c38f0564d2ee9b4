import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { type Command, Option } from 'commander'
import { shownPath } from '../../../common/curl-lines.ts'
import { ServeError } from '../../../common/errors.ts'
import type { Output } from '../output.ts'
import { newCommand, runCommand } from '../run-command.ts'
import { TEMPLATE_NAMES, TEMPLATES, writeProject } from './write-project.ts'

const EXAMPLES = `
Templates:
${[...TEMPLATES].map(([name, { about }]) => `  ${name.padEnd(12)} ${about}`).join('\n')}

Examples:
  Make a project, and serve it:
    $ torchserve-ts init my-model --template text-stream
    $ cd my-model && npm install && npm run dev
  The same with npm, which asks for the template:
    $ npm create torchserve-ts my-model`

/**
 * The command `torchserve-ts init`: writes a project with a handler, its test, and the commands to run it.
 * @returns the exit status
 */
export function runInit(argv: readonly string[], output: Output): Promise<number> {
  const program = definition(output)
  return runCommand(program, argv, output, async () => {
    const [folder = '.'] = program.args
    const template = program.opts<{ template?: string }>().template ?? (await askTemplate())
    const kind = TEMPLATES.get(template)!
    const files = await writeProject(resolve(folder), kind)
    output.out(`Wrote ${files.join(', ')}`)
    const { model, command } = kind.needs ?? {}
    if (model !== undefined) output.out(model)
    const go = folder === '.' ? [] : [`cd ${shownPath(folder)}`]
    const steps = [...go, ...(command === undefined ? [] : [command]), 'npm install', 'npm run dev']
    output.out(`Next: ${steps.join(' && ')}`)
    return 0
  })
}

function definition(output: Output): Command {
  return newCommand('torchserve-ts init', output)
    .description('Writes a project: a handler, its test, and the commands to run both. Overwrites nothing')
    .argument('[folder]', 'its folder, whose name becomes the name of the model (default: this one)')
    .addOption(
      new Option('--template <name>', 'kind of project; asked for when it is missing').choices(
        TEMPLATE_NAMES,
      ),
    )
    .addHelpText('after', EXAMPLES)
}

/** @throws ServeError CONFIG when nobody can be asked, or the input ends */
async function askTemplate(): Promise<string> {
  const wanted = `--template must be one of ${TEMPLATE_NAMES.join(', ')}`
  if (!process.stdin.isTTY)
    throw new ServeError('CONFIG', `${wanted}. Set it: init can ask only in a terminal`)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const ended = new Promise<never>((_, reject) =>
    terminal.once('close', () => reject(new ServeError('CONFIG', wanted))),
  )
  ended.catch(() => undefined)
  try {
    const list = [...TEMPLATES].map(([name, { about }], index) => `  ${index + 1}  ${name}: ${about}\n`)
    process.stdout.write(list.join(''))
    for (;;) {
      const question = terminal.question('Template (number or name, Enter for 1): ')
      const answer = (await Promise.race([question, ended])).trim() || '1'
      const name = TEMPLATE_NAMES[Number(answer) - 1] ?? answer
      if (TEMPLATES.has(name)) return name
    }
  } finally {
    terminal.close()
  }
}
