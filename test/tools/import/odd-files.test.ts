import { type FileCase, REJECTS_HEADER, testImports } from '../../harness/file-cases.ts';

const TITLES = 'Garden list;;\nof 2026, "east;;\n;;\nId;Name;Tag\n1;Acer;x\nx;Rosa;\n';
const FEATURES = [
  '{"type":"Feature","id":7,"geometry":{"type":"Point","coordinates":[1,2]},"properties":{"name":"Acer","tag":null}}',
  '{"type":"Feature","id":"8","geometry":null,"properties":{"id":9,"name":"Poa, {[\\"","tag":"x"}}',
  '{"type":"Feature","id":10,"properties":null}',
  '{"type":"Feature","id":"plots.1","properties":{"name":"Rosa","row":3}}',
];
/** GeoJSON as QGIS writes it. */
const GEOJSON = `{"type":"FeatureCollection","name":"plots","bbox":[1,2,3,4],"features":[${FEATURES}]}`;
const GEOJSON_STORED = ['7,Acer,', '9,"Poa, {[""",x'];
/** @param line on which the features begin */
function geoJsonRejects(line: number): (string | RegExp)[] {
  return [
    `{"id":10,"line":${line},"row":3,"error":40002,"message":"name is required"}`,
    new RegExp(
      String.raw`^\{"id":"plots\.1","name":"Rosa","line":${line},"row":4,"error":40002,"message":"id \\"plots\.1\\" is not a number; `,
    ),
  ];
}

const CASES: FileCase[] = [
  {
    what: 'title rows, which the message names',
    content: TITLES,
    failure: /the column id is missing; .*; line 4 names id and name and tag, so use --header-row 4 if /,
  },
  {
    what: 'title rows above the named header, and their quote',
    content: TITLES,
    args: ['--header-row', '4'],
    stored: ['1,Acer,x'],
    rejects: ['id,name,tag,line,row,error,message', /^x,Rosa,,6,2,40002,/],
  },
  {
    what: 'a header row after the end of the file',
    content: TITLES.replaceAll('\n', '\r\n'),
    args: ['--header-row', '8'],
    failure: / has fewer than 8 lines; .* --header-row; nothing was sent$/,
  },
  {
    what: 'GeoJSON in one line',
    content: GEOJSON,
    stored: GEOJSON_STORED,
    rejects: geoJsonRejects(1),
    note: / is GeoJSON: the properties of each feature are read; /,
  },
  {
    what: 'GeoJSON of many chunks, whose type comes last',
    content: `{"features":[\n${FEATURES},\n${`${FEATURES[0]},\n`.repeat(2000)}${FEATURES[1]}],\n"type":"FeatureCollection"}\n`,
    stored: GEOJSON_STORED,
    rejects: geoJsonRejects(2),
  },
  {
    what: 'a member that a feature or its properties repeat',
    content: `{"features":[${[
      '{"type":"Feature","id":1,"properties":{"name":"a","name":"b"}}',
      '{"type":"Feature","properties":{"id":2,"name":"a"},"properties":{"name":"b"}}',
      '{"type":"Feature","id":3,"id":4,"properties":{"name":"a"}}',
    ]}]}`,
    rejects: [
      /"row":1,"error":40002,"message":"\\"name\\" is given more than once"\}$/,
      /"row":2,"error":40002,"message":"a member other than id, name and tag is given more than once; /,
      /"row":3,"error":40002,"message":"\\"id\\" is given more than once; /,
    ],
  },
  {
    what: 'named members of JSON Lines, and a rejects file that needs no option',
    content:
      '{"No":1,"Taxon":"a","name":"b","tag":"c"}\n{"No":"x","Taxon":"a","name":"b"}\n{"id":3,"name":"b"}\n',
    args: ['--columns', 'id=No,name=Taxon,tag='],
    stored: ['1,a,'],
    rejects: [
      /^\{"id":"x","name":"a","ignored name":"b","line":2,"row":2,"error":40002,"message":"id \\"x\\" is not a /,
      '{"ignored id":3,"ignored name":"b","line":3,"row":3,"error":40002,"message":"id is required; name is required"}',
    ],
  },
  {
    what: 'a named member that no row has, and one that is not read',
    content: '{"id":1,"name":"a","Bed":"B1"}\n{"id":2,"name":"b","Bed":"B2"}\n',
    args: ['--columns', 'tag=bed'],
    stored: ['1,a,', '2,b,'],
    note: /^list: no row has the member "bed" of --columns\nlist: only "id", "name", "bed" are read; ignored: "Bed"$/,
  },
  {
    what: 'a member that may be a misspelt tag, if the first row has no tag',
    content: '[{"id":1,"name":"a","Tag":"x"}]',
    failure:
      /^plant-store: list: the member "Tag" is not known, .* --columns tag=Tag if .*; nothing was sent$/,
  },
  {
    what: 'a member that is like a tag, and a tag or the option for none',
    content: '[{"id":1,"name":"a","Tag":"x","tag":"y"},{"id":2,"Tagg":"x"}]',
    stored: ['1,a,y'],
    note: /^list: only "id", "name", "tag" are read; ignored: "Tag", "Tagg"$/,
    rejects: [/^\{"id":2,"ignored Tagg":"x","line":1,"row":2,/],
  },
  {
    what: 'a list in columns, of which one may be a misspelt tag',
    content: 'id,name,Tagg\n1,a,x\n',
    failure:
      /^plant-store: list: the column "Tagg" is not known, .* --columns tag=Tagg if .*; nothing was sent$/,
  },
  {
    what: 'a column that is like a tag and is left out, also in the rejects file',
    content: 'id,name,Tagg\n1,a,x\nx,b,y\n',
    args: ['--columns', 'tag='],
    stored: ['1,a,'],
    rejects: ['id,name,ignored Tagg,line,row,error,message', /^x,b,y,3,2,/],
  },
  {
    what: 'an id of another meaning, which a rejects file with other ids must not offer as the id',
    content: 'ID,Accession,name\n7,A1,\n',
    args: ['--id-from', 'Accession', '--columns', 'id='],
    rejects: ['ignored id,Accession,name,line,row,error,message', /^7,A1,,2,1,/],
    rejectsArgs: ['--id-from', 'Accession', '--columns', 'id='],
  },
  {
    what: 'a member id of another meaning, which a rejects file must not offer as the id',
    content: '[{"id":7,"Accession":"A1"}]',
    args: ['--id-from', 'Accession', '--columns', 'id='],
    rejects: [/^\{"ignored id":7,"Accession":"A1","line":1,/],
    rejectsArgs: ['--id-from', 'Accession', '--columns', 'id='],
  },
  {
    what: 'a named member that is always null',
    content: '[{"id":1,"name":"a","Bed":null}]',
    args: ['--columns', 'tag=Bed'],
    stored: ['1,a,'],
    note: /^$/,
  },
  {
    what: 'the named id of GeoJSON, in place of that of the feature',
    content:
      '{"features":[{"type":"Feature","id":7,"properties":{"No":1,"name":"a"}},{"type":"Feature","id":8,"properties":{"name":"b"}}]}',
    args: ['--columns', 'id=No'],
    stored: ['1,a,'],
    rejects: ['{"name":"b","line":1,"row":2,"error":40002,"message":"id is required"}'],
  },
  {
    what: 'an object with one list, and other members',
    content:
      '{\n "count": 2,\n "units": ["m"],\n "plants": [\n  {"id": 1,\n   "name": "a"},\n  {"id": 2}\n ],\n "next": {"list": [{}]}\n}\n',
    stored: ['1,a,'],
    rejects: ['{"id":2,"line":7,"row":2,"error":40002,"message":"name is required"}'],
    note: / is a JSON object: its list "plants" is read$/,
  },
  {
    what: 'an object with two lists',
    content: '{"plants":[{"id":1,"name":"a"}],\n"places":[{"id":2,"name":"b"}]}',
    failure: / is a JSON object with two lists, "plants" and "places"; .*; nothing was sent$/,
  },
  {
    what: 'an object without a list',
    content: '{"plants":{\n"1":"a"},"count":1}',
    failure:
      / is a JSON object without a list of objects; its members are "plants", "count"; .*GeoJSON; nothing /,
  },
  {
    what: 'an object that ends within its list',
    content: '{"plants":[\n{"id":1,"name":"a"},',
    failure: / ends before the end of the JSON array, at or after element 2; nothing was sent$/,
  },
  {
    what: 'JSON Lines whose plants have lists, and whose first line is incomplete',
    content:
      '{"name":"a","synonyms":[{"id":5,"name":"b"}],\n{"name":"a","synonyms":[{"id":5,"name":"b"}],"id":1}\n',
    stored: ['1,a,'],
    rejects: [/^\{"text":"\{\\"name\\".*,"line":1,"row":1,"error":40001,/],
  },
  {
    what: 'JSON Lines whose last line is incomplete',
    content: '{"id":1,"name":"a"}\nnul',
    stored: ['1,a,'],
    rejects: [/^\{"text":"nul","line":2,"row":2,"error":40001,/],
  },
  {
    what: 'JSON Lines with one line, whose plant has a list',
    content: '{"id":1,"synonyms":[{"id":5,"name":"b"}]}',
    rejects: [
      '{"id":1,"synonyms":[{"id":5,"name":"b"}],"line":1,"row":1,"error":40002,"message":"name is required"}',
    ],
  },
  {
    what: 'a rejected plant without an id, whose list has ids',
    content:
      '{"id":1,"name":"a"}\n{"Nr":2,"synonyms":[{"id":5,"name":"b"}],"photos":[{"id":6,"name":"c"}]}\n',
    stored: ['1,a,'],
    rejects: [
      '{"Nr":2,"synonyms":[{"id":5,"name":"b"}],"photos":[{"id":6,"name":"c"}],"line":2,"row":2,"error":40002,"message":"id is required; name is required"}',
    ],
  },
  {
    what: 'a rejected plant without an id, whose list is empty',
    content: '{"id":1,"name":"a"}\n{"Nr":5,"tag":"t","synonyms":[]}\n',
    stored: ['1,a,'],
    rejects: [/^\{"Nr":5,"tag":"t","synonyms":\[\],"line":2,"row":2,"error":40002,/],
  },
  {
    what: 'a rejected feature without an id, whose list has ids',
    content:
      '{"features":[{"type":"Feature","properties":{"name":"Acer","features":[{"id":85,"name":"photo"}]}}]}',
    rejects: [
      /^\{"name":"Acer","features":\[.*\],"line":1,"row":1,"error":40002,"message":"id is required"\}$/,
    ],
  },
  {
    what: 'JSON Lines with one line, whose plant has the named id after its list',
    content: '{"name":"a","synonyms":[{"N\u00famero":8,"name":"b"}],"N\\u00famero":5}',
    args: ['--columns', 'id=N\u00famero'],
    stored: ['5,a,'],
  },
  {
    what: 'JSON Lines with one line, whose id is made',
    content: '{"Accession":"A1","name":"a","parts":[{"Accession":"A1a","name":"b"}]}',
    args: ['--id-from', 'Accession', '--columns', 'id='],
    stored: ['815634507993410282,a,'],
  },
  {
    what: 'a plant with a list on several lines, whose id is named',
    content: '{"syn":[{"ACC":8,"taxon":"b"}],\n"ACC":5,"taxon":"a"}',
    args: ['--columns', 'id=ACC,name=taxon'],
    failure: / is a JSON object with the list "syn" and the member "ACC" of a plant; .*; nothing was sent$/,
  },
  {
    what: 'GeoJSON with a name and without features',
    content: '{"type":"FeatureCollection","name":"plots","features":[]}',
  },
  {
    what: 'a value that is no text',
    content: '[{"id":1.5,"name":["a"],"tag":0}]',
    rejects: [
      /"message":"id 1\.5 must be an integer .*; name \[\\"a\\"\] is not a text; .*; tag 0 is not a text; /,
    ],
  },
  {
    what: 'a quote that is never closed, after a field with line breaks',
    content: 'id,name,tag\n1,a,\n2,"b\nb","c\n3,d,\n4,e,',
    stored: ['1,a,'],
    rejects: [
      'id,name,tag,line,row,error,message',
      ...['"2,""b', 'b"",""c', '3,d,'],
      '4,e,",,,3,2,quotes,"the row has a quote that is never closed: it begins in line 4, and takes 3 lines; write each value into its own column; in a text editor, enclose a value that has quotes, and double these"',
    ],
  },
  {
    what: 'a quote that is never closed, in a list with one column',
    content: 'name\n"Acer\nQuercus\nTilia\n',
    args: ['--id-from', 'name'],
    rejects: ['name,line,row,error,message', '"""Acer', 'Quercus', /^Tilia",2,1,quotes,/],
    rejectsArgs: ['--id-from', 'name'],
  },
  {
    what: 'a quote that another row closes',
    content: 'id,name\n1,"a\n2,b\n3,"c"\n4,d\n',
    stored: ['4,d,'],
    rejects: [
      REJECTS_HEADER,
      '"1,""a',
      '2,b',
      /^3,""c""",,2,1,quotes,"the row has a misplaced quote in 3 lines from line 2 on, /,
    ],
  },
];

testImports('files as people have them', CASES);
