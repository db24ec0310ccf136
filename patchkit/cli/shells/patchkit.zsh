#compdef patchkit
# Completion of patchkit for zsh: eval "$(patchkit completion zsh)", after compinit
_patchkit() {
    local line word text tab=$'\t'
    local -a described
    while IFS= read -r line; do
        word=${line%%$tab*}
        text=${line#*$tab}
        case $line in
            :files) _files; return ;;
            :folders) _files -/; return ;;
            *$tab*) described+=("${word//:/\\:}:$text") ;;
            *) described+=("${word//:/\\:}") ;;
        esac
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe 'patchkit' described
}
if [[ ${funcstack[1]-} == _patchkit ]]; then
    _patchkit "$@"
else
    compdef _patchkit patchkit
fi
