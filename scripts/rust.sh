# shellcheck shell=bash
# Sourced: puts a recent cargo and rustc on the PATH, from any place where scripts/setup may have installed them: the
# distribution's packages, rustup ($HOME/.cargo), or Ubuntu's versioned packages (/usr/lib/rust-1.95).

rust_oldest=1.95

rust_is_there() {
  local version; version=$(rustc --version 2>/dev/null | awk '{ print $2 }')
  [[ -n $version ]] && command -v cargo >/dev/null && printf '%s\n' "$rust_oldest" "$version" | sort -VC
}

if ! rust_is_there; then
  rust_path=$PATH
  while IFS= read -r folder; do
    PATH=$folder:$rust_path
    rust_is_there && break
    PATH=$rust_path
  done < <(echo "$HOME/.cargo/bin"; find /usr/lib -maxdepth 2 -path '/usr/lib/rust-1.*/bin' 2>/dev/null | sort -V)
  export PATH
fi
