def test_runs(opened):
    app = opened("Runs", "loans")
    print([h.proto for h in app.get("html")], app.dataframe)
def test_rest(opened):
    for page in ("What if", "Explanations", "Monitoring"):
        app = opened(page)
        print(page, [h.proto for h in app.get("html")])
