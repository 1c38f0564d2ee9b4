import type { Mutant } from '../mutant.ts'

const IDENTITY = 'model-archiver/archive-identity.ts'
const SIGNED = ['tests/security/signed-archives.test.ts']

/** Hashes, pins and signatures of archives. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an archive may change between its check and its use',
    file: 'model-archiver/hashed-file.ts',
    find: 'if (!this.#digestAt(start + at).equals(sha256(block))) throw changed()',
    replace: 'void block',
    tests: ['tests/model-archiver/hashed-file.test.ts'],
  },
  {
    name: 'a signature of other bytes counts',
    file: IDENTITY,
    find: 'if (!isGenuine(signature, file.digest(signature.hash)))',
    replace: 'if (false)',
    tests: SIGNED,
    title: 'with one changed byte over',
  },
  {
    name: 'a signature of any key counts',
    file: IDENTITY,
    find: 'find((known) => known.key.equals(key))',
    replace: 'find(() => true)',
    tests: SIGNED,
    title: 'signed by a stranger over',
  },
  {
    name: 'a signature for another purpose counts',
    file: IDENTITY,
    find: 'if (signature.namespace === SIGNATURE_NAMESPACE) return signature',
    replace: 'return signature',
    tests: SIGNED,
    title: 'signed for Git over',
  },
  {
    name: 'the pin of a register call is not compared',
    file: IDENTITY,
    find: 'if (sha256 !== undefined && sha256 !== found)',
    replace: 'if (false)',
    tests: ['tests/security/pinned-archives.test.ts'],
    title: 'keeps another archive out',
  },
]
