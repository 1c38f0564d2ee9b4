/**
 * Runs TorchServe's own tests against this server: `npm run test:torchserve -- --tests DIR`, where DIR is a
 * checkout of pytorch/serve. docs/internals/conformance.md describes the runs, the changes to the tests,
 * and the results. Not part of `npm test`.
 */
import { join } from 'node:path'
import { Command } from 'commander'
import { COLLECTIONS } from './collections.ts'
import { judge } from './impossible.ts'
import { Mirror } from './mirror.ts'
import { installNewman } from './newman.ts'
import { BUILD } from './places.ts'
import { freePorts } from './ports.ts'
import { runPostman } from './postman.ts'
import { generateStubs, runPytest } from './pytest.ts'
import { PYTEST_FILES, PYTHON_PYTEST_FILES } from './pytest-files.ts'
import { formatReport, writeReport } from './report.ts'
import type { Result } from './result.ts'
import { rewrite, rewrites } from './rewrites.ts'
import { replaceWorkflows } from './replace-workflows.ts'
import { MODELS_VENV } from './models-venv.ts'
import { trainMnist } from './mnist.ts'
import { NODE_PACKING, pythonPacking } from './packing.ts'
import { makeCommands, makeServerCommand } from './shims.ts'
import { StandIns } from './stand-ins.ts'
import { TESTS_VENV } from './venv.ts'
import { Workspace } from './workspace.ts'
import { Zoo } from './zoo.ts'

const DETAILS = join(BUILD, 'torchserve-results.json')

interface Options {
  tests: string
  only?: string[]
  python?: boolean
}

async function main({ tests, only, python = false }: Options): Promise<boolean> {
  await freePorts()
  const venv = python ? MODELS_VENV : TESTS_VENV
  const packing = python ? pythonPacking(venv.bin) : NODE_PACKING
  const space = await Workspace.create(tests, venv.bin)
  const standIns = await StandIns.create(space.checkout, space.archives, packing)
  const zoo = python ? await Zoo.create(space, standIns.answers) : undefined
  const mirror = await Mirror.start(standIns, async (name) => zoo?.weights(name))
  const results: Result[] = []
  try {
    await rewrite(space.checkout, rewrites(mirror.url))
    await venv.make()
    await (python ? makeServerCommand(space) : makeCommands(space))
    if (python) await trainMnist(space)
    await replaceWorkflows(space, standIns)
    await installNewman()
    await generateStubs(space)
    const wanted = (name: string): boolean => only?.includes(name) ?? true
    for (const collection of COLLECTIONS.filter(({ name }) => wanted(name))) {
      console.log(`Running the collection ${collection.name} ...`)
      results.push(...(await runPostman(collection, space, standIns)).map((result) => judge(result, python)))
    }
    const files = python ? [...PYTEST_FILES, ...PYTHON_PYTEST_FILES] : PYTEST_FILES
    for (const file of files.filter(wanted)) {
      console.log(`Running ${file} ...`)
      results.push(...(await runPytest(file, space, absent(python))).map((result) => judge(result, python)))
    }
  } finally {
    await mirror.stop()
    await space.remove()
  }
  await writeReport(results, DETAILS)
  console.log(`\n${formatReport(results)}\n\nDetails: ${DETAILS}`)
  return results.length > 0 && results.every(({ outcome }) => outcome !== 'failed')
}

/** Modules that test files import at their top and that are not there. */
function absent(python: boolean): string[] {
  const hub = ['transformers', 'test_data.streaming.stream_handler']
  return python ? hub : ['torch', 'ts.torch_handler', ...hub]
}

const command = new Command('test:torchserve')
  .description("Runs TorchServe's own Postman collections and pytest files against this server.")
  .requiredOption('--tests <folder>', 'a checkout of pytorch/serve')
  .option('--python', "with Python models, TorchServe's own archivers and its Python worker")
  .option('--only <names...>', 'only these collections and test files')
  .parse()
process.exitCode = (await main(command.opts<Options>())) ? 0 : 1
