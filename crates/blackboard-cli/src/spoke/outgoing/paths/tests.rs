use super::*;

#[test]
fn paths_of_this_machine_are_replaced() {
    testkit::limit_test();
    for (text, expected) in [
        ("fixed /home/ivy/secret/main.rs.", "fixed [path]."),
        ("see (/home/oak/x) and '~/notes'", "see ([path]) and '[path]'"),
        ("/home/oak:12: error", "[path]:12: error"),
        ("PATH=/usr/local/bin:/opt/x/bin", "PATH=[path]:[path]"),
        ("-I/home/oak/include -L/opt/lib", "-I[path] -L[path]"),
        ("_/home/oak/x_ --/opt/y/z **/opt/y/z**", "_[path] --[path] **[path]"),
        (r"C:\Users\ivy\a.txt and \\nas\share", "[path] and [path]"),
        (r"-IC:\Users\ivy D:/work/x c:\\Users\\ivy", "-I[path] [path] [path]"),
        ("file:///home/oak/a file:/home/oak/a", "[path] file:[path]"),
        ("vscode://file/home/oak/x.rs", "vscode://file[path]"),
        ("vscode://file/C:/Users/ivy/x.rs", "vscode://file/C:[path]"),
        ("sqlite:///home/oak/x.db and redis://a:1/srv/x", "sqlite://[path] and redis://a:1[path]"),
        ("~ivy/notes ~/a x~ivy/b $HOME/a ${HOME}/b", "[path] [path] x[path] [path] [path]"),
        ("'/home/oak/My Documents/tax.txt' is", "'[path]' is"),
        ("'--out=/home/oak/My Documents/tax.txt' is", "'--out=[path]' is"),
        ("\"C:\\Users\\ivy\\My Documents\" is", "\"[path]\" is"),
        ("“/My Documents/tax” and `/My Files/x`", "“[path]” and `[path]`"),
        ("'/home/oak/don't ask/x' is", "'[path]' is"),
        ("'/home/oak/x is open", "'[path] is open"),
        (r"/home/oak/My\ Documents/tax.txt is", "[path] is"),
        ("\"\\/home\\/oak\\/x\"", "\"\\[path]\""),
        // The home directory, wherever it is.
        ("x/home/ivy/a HTTPS://e.org/home/ivy/x, b", "x[path] HTTPS://e.org[path], b"),
        // What stays.
        ("https://example.org/a/b,c/d stays", "https://example.org/a/b,c/d stays"),
        ("(https://e.org/a/b),/opt/x/y", "(https://e.org/a/b),[path]"),
        ("http://[::1]:80/a/b git+ssh://e.org/a/b", "http://[::1]:80/a/b git+ssh://e.org/a/b"),
        ("src/store/mod.rs and/or docs/ 1/2", "src/store/mod.rs and/or docs/ 1/2"),
        ("run /help, '/tmp and /x' and /", "run /help, '/tmp and /x' and /"),
        ("../a/b ./c/d a/**/b/c", "../a/b ./c/d a/**/b/c"),
        ("ümlaut /härte/wörk ö", "ümlaut [path] ö"),
        ("", ""),
    ] {
        let clean = without_paths(text, Some("/home/ivy/"));
        assert_eq!(clean, expected, "{text}");
        assert_eq!(without_paths(&clean, Some("/home/ivy/")), clean, "filtered twice: {text}");
    }
}

#[test]
fn a_home_directory_of_one_name_is_replaced_where_a_path_begins() {
    testkit::limit_test();
    for (text, expected) in [
        ("in /root, -I/root and vscode://file/root", "in [path], -I[path] and vscode://file[path]"),
        ("src/root/a and /rootfs", "src/root/a and /rootfs"),
        ("https://e.org/root/a", "https://e.org/root/a"),
    ] {
        assert_eq!(without_paths(text, Some("/root")), expected);
    }
    assert_eq!(without_paths("a / b", Some("/")), "a / b");
}
