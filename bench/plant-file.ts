import { writeFileSync } from 'node:fs';

const SYLLABLES = 'al ba cor da el fo gra hir is lan mon ni ob pa quer ru sal ta ul vi xan za'.split(' ');
const ENDINGS = ['a', 'ensis', 'folia', 'ica', 'iflora', 'is', 'um', 'us'];
const FAMILIES = 'Araceae Asteraceae Fabaceae Lamiaceae Orchidaceae Poaceae Rosaceae Rubiaceae'.split(' ');

/** Writes a CSV file like a plant inventory: short ids, Latin-like names, families as tags. */
export function writePlantFile(path: string, rows: number): void {
  const lines = ['id,name,tag'];
  for (let id = 1; id <= rows; id++) {
    // Multiples of a large odd number: unordered names, which are the same in every run.
    const draw = Math.imul(id, 0x9e3779b1) >>> 0;
    const genus = word(draw, 3) + ENDINGS[draw % ENDINGS.length];
    const species = word(draw >>> 7, 4) + ENDINGS[(draw >>> 3) % ENDINGS.length];
    lines.push(
      `${id},${genus[0]!.toUpperCase()}${genus.slice(1)} ${species},${FAMILIES[draw % FAMILIES.length]}`,
    );
  }
  writeFileSync(path, `${lines.join('\n')}\n`);
}

function word(draw: number, syllables: number): string {
  let text = '';
  for (let rest = draw, count = 0; count < syllables; count++, rest = Math.floor(rest / SYLLABLES.length)) {
    text += SYLLABLES[rest % SYLLABLES.length];
  }
  return text;
}
