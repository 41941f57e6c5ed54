import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { isIntact } from '../../core/commit/checksum.ts';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { databaseFlag } from '../../engines/openers/database-url.ts';
import type { PlantSearch } from '../../engines/search/plant-search.ts';
import type { SearchProgress } from '../../engines/search/search-slices.ts';
import { COMMON_FIELDS } from '../../server/response-headers.ts';
import type { KnownDamage } from '../health/known-damage.ts';
import { json, type OpsResponse } from '../ops-response.ts';
import { type Activity, cutText } from './activity.ts';
import { type ApiRequest, countOf, failure, filterOf, type Handler } from './api-requests.ts';
import type { PlantTotal } from './plant-total.ts';
import { plantsCsv } from './plants-csv.ts';
import type { LabelOf } from './rejected-requests.ts';

/** Plants of a page, as in `search.js` of the page. */
const SHOWN_PLANTS_MAX = 50;
/** The page shows this many of the last revisions of a plant. */
const SHOWN_REVISIONS_MAX = 500;
/** Revised plants that are read from the store for a response, unless the request wants more. */
const REVISED_DEFAULT = 20;
/** The contents of a revised plant are looked for among so many of its last revisions. */
const COMPARED_REVISIONS_MAX = 50;
/** After this time, a search ends with its next slice and the pause behind it. */
const SEARCH_TIME_MS = 400;

interface PlantParts {
  search: PlantSearch;
  activity: Activity;
  total: PlantTotal;
  damage: KnownDamage;
  labelOf: LabelOf;
  shown: {
    /** The store, without its password. */
    database: string;
    /** Returns the address of `/docs` for a console at a host; undefined: `/docs` is not served. */
    docsUrl: ((consoleHost: string) => string) | undefined;
  };
}

/** The requests of the screens Plants and Tags. */
export class PlantRequests {
  readonly #parts: PlantParts;

  constructor(parts: PlantParts) {
    this.#parts = parts;
  }

  /** By method and path. */
  readonly handlers: Record<string, Handler> = {
    'GET api/plants': async ({ query }) => {
      const { search } = this.#parts;
      const { plants, ...progress } = await search.page(filterOf(query), SHOWN_PLANTS_MAX, SEARCH_TIME_MS);
      return json({
        plants: plants.map(each => ({ id: String(each.plant.id), ...this.#shown(each) })),
        ...shownProgress(progress),
      });
    },
    'GET api/plants/count': async ({ query }) => {
      const { plants, ...progress } = await this.#parts.search.count(filterOf(query), SEARCH_TIME_MS);
      return json({ plants, ...shownProgress(progress) });
    },
    'GET api/plants/total': () => json({ total: this.#parts.total.read() }),
    'GET api/tags': async ({ query }) => {
      const { from } = filterOf(query);
      const { tags, untagged, others, ...progress } = await this.#parts.search.countTags(
        from,
        SEARCH_TIME_MS,
      );
      return json({ tags: [...tags], untagged, others, ...shownProgress(progress) });
    },
    'GET api/revisions/count': async () =>
      json({ revisions: (await this.#parts.search.revisions()) ?? null }),
    'GET api/newest': ({ request }) => {
      const { activity, labelOf } = this.#parts;
      return json({
        plants: activity.newest(labelOf),
        startedAt: activity.startedAt,
        docs: this.#docsUrl(request),
      });
    },
    'GET api/revised': ({ query }) =>
      this.#revised(query.get('token') || undefined, countOf(query, 'count') ?? REVISED_DEFAULT),
    'GET api/revisions': async ({ query, request }) => {
      const { search, shown } = this.#parts;
      const { id } = filterOf(query);
      const revisions = id === undefined ? [] : await search.revisionsOf(id, SHOWN_REVISIONS_MAX);
      if (revisions.length === 0) return failure(404, 'no plant has this id');
      return json({
        revisions: revisions.map(each => this.#shown(each)),
        docs: this.#docsUrl(request),
        databaseFlag: databaseFlag(shown.database),
      });
    },
    'GET api/plants.csv': request => this.#download(request),
  };

  /**
   * The plants that this instance revised last, with their contents before and after. A content is
   * null if the plant has many later revisions.
   *
   * @param token the label of a token; undefined: all tokens
   * @param count how many of them are read
   */
  async #revised(token: string | undefined, count: number): Promise<OpsResponse> {
    const { activity, search, labelOf } = this.#parts;
    const read = new Map<bigint, PlantRevision[]>();
    const plants: object[] = [];
    const revised = activity.revised(labelOf, token);
    for (const { id, revision, ...change } of revised.slice(0, count)) {
      const revisions = read.get(id) ?? (await search.revisionsOf(id, COMPARED_REVISIONS_MAX));
      read.set(id, revisions);
      const contentOf = (wanted: number): object | null => {
        const found = revisions.find(each => each.revision === wanted);
        return found === undefined ? null : this.#cutContent(found);
      };
      plants.push({
        id: String(id),
        revision,
        ...change,
        before: contentOf(revision - 1),
        after: contentOf(revision),
      });
    }
    return json({ plants, total: revised.length, startedAt: activity.startedAt });
  }

  #cutContent(stored: PlantRevision): object {
    const { name, tag, isDamaged } = this.#shown(stored);
    return { name: name && cutText(name), tag: tag && cutText(tag), isDamaged };
  }

  #shown(stored: PlantRevision): {
    revision: number;
    name?: string;
    tag?: string | undefined;
    recordedAt?: number;
    recordedBy?: string;
    isDamaged?: true;
  } {
    const { damage, labelOf } = this.#parts;
    const { plant, revision, recordedAt, recordedBy } = stored;
    const { name, tag } = plant;
    if (isIntact(stored)) return { revision, name, tag, recordedAt, recordedBy: labelOf(recordedBy) };
    damage.report('a search');
    return { revision, isDamaged: true };
  }

  /** The address of the documentation page; null: it is not served. */
  #docsUrl({ headers: { host } }: IncomingMessage): string | null {
    return this.#parts.shown.docsUrl?.(new URL(`http://${host}`).hostname) ?? null;
  }

  async #download({ query, response }: ApiRequest): Promise<undefined> {
    const { search, labelOf } = this.#parts;
    const lines = plantsCsv(search, filterOf(query), labelOf);
    response.writeHead(200, [
      'Content-Type',
      'text/csv; charset=utf-8',
      'Content-Disposition',
      'attachment; filename="plants.csv"',
      ...COMMON_FIELDS,
    ]);
    // The pipeline reads no faster than the client, so memory use stays constant.
    await pipeline(lines, response);
  }
}

function shownProgress({ next, searched }: SearchProgress) {
  return { next: next === undefined ? null : String(next), searched };
}
