# To be sourced: git in this shell has a fixed name and date and none of your settings, so that the
# ids are those that the pages of docs/howto show.
export GIT_AUTHOR_NAME='Ursula User' GIT_AUTHOR_EMAIL=user@example.com
export GIT_COMMITTER_NAME='Ursula User' GIT_COMMITTER_EMAIL=user@example.com
export GIT_AUTHOR_DATE='1767323045 +0000' GIT_COMMITTER_DATE='1767323045 +0000'
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null TZ=UTC
