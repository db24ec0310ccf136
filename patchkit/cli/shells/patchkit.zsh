#compdef patchkit
# Completion of patchkit for zsh: eval "$(patchkit completion zsh)", after compinit
_patchkit() {
    local line
    local -a described
    while IFS= read -r line; do
        case $line in
            :files) _files; return ;;
            :folders) _files -/; return ;;
            *) described+=("${${line%%$'\t'*}//:/\\:}${${(M)line%$'\t'*}:+:${line#*$'\t'}}") ;;
        esac
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe -V 'patchkit' described
}
if [[ ${funcstack[1]-} == _patchkit ]]; then
    _patchkit "$@"
else
    compdef _patchkit patchkit
fi
