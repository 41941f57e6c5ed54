import { Argument, Command } from 'commander';

/** @param load makes the program with all its commands */
export function completionCommand(load: () => Promise<Command>): Command {
  return new Command('completion')
    .description('print a script that completes commands and options in bash or zsh')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
    .action(async () =>
      // Without a match, as for an empty word after most commands, the shell completes file names.
      console.log(`[ -z "$ZSH_VERSION" ] || { autoload -Uz bashcompinit; bashcompinit; }
_plant_store() {
  local choices; case " \${COMP_WORDS[*]:1:COMP_CWORD-1} " in
${casesOf(' ', await load())}  esac; [ "\${COMP_WORDS[COMP_CWORD]}" ] || choices=\${choices%%--*}
  COMPREPLY=($(compgen -W "$choices" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _plant_store plant-store`),
    );
}

/** The words that may follow. The shell takes the first case that matches, the longest here. */
function casesOf(words: string, { commands, options, registeredArguments }: Command): string {
  const values = registeredArguments.flatMap(each => each.argChoices ?? []);
  const choices = [...commands.map(each => each.name()), ...values, ...options.map(({ long }) => long)];
  const nested = commands.map(each => casesOf(`${words}${each.name()} `, each)).join('');
  return `${nested}  "${words}"*) choices='${choices.join(' ')} --help' ;;\n`;
}
