# Completion of patchkit for bash: eval "$(patchkit completion bash)"
_patchkit() {
    local cur=${COMP_WORDS[COMP_CWORD]} line
    [[ $cur == "=" ]] && cur=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
            :folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _patchkit patchkit
