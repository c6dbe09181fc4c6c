//! One winner among many processes that write a new key.

use serde_json::json;

use crate::crowd::at_once;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    one_of_64_processes_writes_a_new_key_and_63_get_its_author_and_time,
    one_of_64_transactions_that_need_an_absent_key_succeeds,
];

fn one_of_64_processes_writes_a_new_key_and_63_get_its_author_and_time() {
    let board = TestBoard::new();
    let answers = at_once(64, |index| {
        let agent = format!("agent-{index}");
        board.run(["write", "leader", &index.to_string(), "--if-absent", "--agent", &agent, "--json"])
    });
    let winners: Vec<_> = (0..64).filter(|&index| answers[index].code == 0).collect();
    let [winner] = winners[..] else { panic!("{} winners", winners.len()) };
    let entry = board.json(&["read", "leader"]);
    assert_eq!((&entry["value"], &entry["version"]), (&json!(winner), &json!(1)));
    for (_, answer) in answers.iter().enumerate().filter(|(index, _)| *index != winner) {
        assert_eq!((answer.code, answer.stderr.as_str()), (4, ""), "{answer:?}");
        let refusal = answer.json();
        assert_eq!(refusal["code"], "already_exists");
        assert_eq!(refusal["held_by_name"], format!("agent-{winner}"));
        assert_eq!((&refusal["since"], &refusal["revision"]), (&entry["created_at"], &entry["revision"]));
    }
    assert_eq!(board.count_of("entry_written"), 1);
    board.assert_sound();
}

fn one_of_64_transactions_that_need_an_absent_key_succeeds() {
    let board = TestBoard::new();
    let answers = at_once(64, |index| {
        let transaction = json!({
            "compare": [{"key": "leader", "exists": false}],
            "then": [
                {"write": {"key": "leader", "value": index}},
                {"write": {"key": format!("term:{index}"), "value": 1}},
            ],
            "else": [{"read": {"key": "leader"}}],
        });
        // Half of them do nothing else if they lose.
        let transaction = match index % 2 {
            0 => transaction.to_string(),
            _ => json!({"compare": transaction["compare"], "then": transaction["then"]}).to_string(),
        };
        board.fed(&["txn", "--json"], &transaction)
    });
    let has_won = |index: &usize| answers[*index].code == 0 && answers[*index].json()["succeeded"] == true;
    let winners: Vec<_> = (0..64).filter(has_won).collect();
    let [winner] = winners[..] else { panic!("{} winners", winners.len()) };
    for (index, answer) in answers.iter().enumerate().filter(|(index, _)| *index != winner) {
        assert_eq!(answer.stderr, "");
        let json = answer.json();
        if index % 2 == 0 {
            assert_eq!(answer.code, 0, "{answer:?}");
            assert_eq!(
                (&json["succeeded"], &json["results"][0]["read"]["value"]),
                (&json!(false), &json!(winner))
            );
        } else {
            assert_eq!((answer.code, &json["code"]), (4, &json!("conflict")), "{answer:?}");
        }
    }
    assert_eq!(board.json(&["list"]), json!(["leader", format!("term:{winner}")]), "all of it or nothing");
    assert_eq!(board.count_of("entry_written"), 2);
    board.assert_sound();
}
