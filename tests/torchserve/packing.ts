import { join } from 'node:path'
import { createArchive } from '../../model-archiver/pack.ts'
import { packWorkflow } from '../../model-archiver/pack-workflow.ts'
import { PYTHON_STAND_INS, STAND_INS } from './places.ts'
import { execa } from '../support/tools.ts'

/** How stand-ins become archives. */
export interface Packing {
  /** @param answers file with what the network answers @returns the path of NAME.mar in `folder` */
  archive(name: string, answers: string, folder: string): Promise<string>
  /**
   * @param functions name of the module with the workflow's functions
   * @returns the path of the .war in `folder`
   */
  war(workflow: string, specFile: string, functions: string, folder: string): Promise<string>
}

/** Models that are more than a network with recorded answers. */
const HANDLERS: Readonly<Record<string, string>> = {
  echo_stream: 'echo-stream',
  cat_dog_classification: 'cat-or-dog',
  dog_breed_classification: 'dog-breed',
}

/** JavaScript, with our archivers. */
export const NODE_PACKING: Packing = {
  archive: (modelName, answers, folder) =>
    createArchive({
      ...{ modelName, version: '1.0', extraFiles: [answers], exportPath: folder, force: true },
      handler: join(STAND_INS, `${HANDLERS[modelName] ?? 'recorded'}.ts`),
    }),
  war: async (workflowName, specFile, functions, folder) => {
    const handler = join(STAND_INS, 'workflows', `${functions}.ts`)
    return (await packWorkflow({ workflowName, specFile, handler, exportPath: folder, force: true })).path
  },
}

/** Python, with TorchServe's own archivers. @param bin folder of their commands */
export function pythonPacking(bin: string): Packing {
  const inModels = (name: string): string => join(PYTHON_STAND_INS, `${name.replaceAll('-', '_')}.py`)
  return {
    archive: async (name, answers, folder) => {
      await execa(join(bin, 'torch-model-archiver'), [
        ...['--model-name', name, '--version', '1.0', '--export-path', folder, '--force'],
        ...['--handler', inModels(HANDLERS[name] ?? 'recorded')],
        ...['--extra-files', `${answers},${inModels('recorded')}`],
      ])
      return join(folder, `${name}.mar`)
    },
    war: async (name, specFile, functions, folder) => {
      const handler = join('workflows', functions)
      await execa(join(bin, 'torch-workflow-archiver'), [
        ...['--workflow-name', name, '--spec-file', specFile, '--handler', inModels(handler)],
        ...['--export-path', folder, '--force'],
      ])
      return join(folder, `${name}.war`)
    },
  }
}
