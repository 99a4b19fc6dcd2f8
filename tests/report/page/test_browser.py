"""The page in a real browser."""

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait


@pytest.fixture
def browser(chromium, made):
    """The page, freshly opened; nothing in it may complain."""
    show(chromium)
    chromium.get(made.page.as_uri())
    wait(chromium, "return performance.getEntriesByName('drawn').length > 0")
    yield chromium
    assert chromium.get_log("browser") == []
    assert chromium.execute_script("return performance.getEntriesByType('resource')") == []


def show(driver, width=1280, height=900, mobile=False, scheme="light"):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wait(driver, script):
    WebDriverWait(driver, 60).until(lambda driver: driver.execute_script(script))


def column(driver, number, table="#board tbody:first-of-type"):
    script = "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.textContent)"
    return driver.execute_script(script, f"{table} tr > :nth-child({number})")


def press(driver, *keys):
    ActionChains(driver).send_keys(*keys).perform()


def focused(driver):
    return driver.switch_to.active_element


def zoomed(driver):
    script = "const { range } = document.getElementById('loss').layout.xaxis; return range"
    return driver.execute_script(script)


def drawn(driver):
    script = "return document.getElementById('loss').data.map((trace) => trace.name)"
    return [name for name in driver.execute_script(script) if name]


def choose(driver, select, text):
    Select(driver.find_element(By.ID, select)).select_by_visible_text(text)


def test_every_column_sorts_both_ways_and_oracles_stay_apart(browser):
    assert column(browser, 2) == ["good", "c", "d", "e", "bad"]
    assert column(browser, 1) == ["1", "2", "3", "4", "5"]
    buttons = len(browser.find_elements(By.CSS_SELECTOR, "#board thead button"))
    assert buttons == 10
    for i in range(buttons):
        orders = []
        for _ in range(2):
            head = browser.find_elements(By.CSS_SELECTOR, "#board thead th")[i]
            head.find_element(By.TAG_NAME, "button").click()
            head = browser.find_elements(By.CSS_SELECTOR, "#board thead th")[i]
            orders.append(head.get_attribute("aria-sort"))
            assert sorted(column(browser, 2)) == ["bad", "c", "d", "e", "good"]
            apart = column(browser, 2, "#board tbody.apart")
            assert sorted(apart) == ["floor", "told"]
            assert column(browser, 1, "#board tbody.apart")[1:] == ["–", "–"]
        assert sorted(orders) == ["ascending", "descending"]
    choose(browser, "length", "all")
    browser.find_element(By.CSS_SELECTOR, "[data-sort=ppl]").click()
    numbers = [float(cell.split()[0]) for cell in column(browser, 5)]
    assert numbers == sorted(numbers)
    browser.find_element(By.CSS_SELECTOR, "[data-sort=learner]").click()
    assert column(browser, 2) == ["bad", "c", "d", "e", "good", "good"]


def test_filters_choose_the_rows_the_runs_and_what_is_drawn(browser, made):
    assert browser.find_element(By.ID, "shown").text == "7 of 9 rows"
    assert len(column(browser, 1, "#runs tbody")) == 8
    assert drawn(browser) == ["good", "c", "d"]
    choose(browser, "length", "4,000")
    assert column(browser, 2) == column(browser, 1, "#runs tbody") == ["good"]
    stream = Select(browser.find_element(By.ID, "stream")).first_selected_option.text
    assert stream == "news: N = 8, λ = 4,000, test half, seed 0"
    assert drawn(browser) == ["good"]
    choose(browser, "corpus", "other")
    assert column(browser, 2) == [made.evil]
    choose(browser, "corpus", "all")
    assert len(column(browser, 2)) == 7


def test_learners_are_drawn_as_they_are_chosen(browser):
    bar = browser.find_element(By.CSS_SELECTOR, "[data-learner=good] button")
    assert bar.get_attribute("aria-pressed") == "true"
    bar.click()
    assert drawn(browser) == ["c", "d"]
    browser.find_element(By.CSS_SELECTOR, "[data-chip=told]").send_keys(" ")
    assert drawn(browser) == ["c", "d", "told"]
    assert focused(browser).get_attribute("data-chip") == "told"


def test_sliders_zoom_with_the_keyboard_and_dragging_with_the_mouse(browser):
    assert zoomed(browser) == [-0.5, 79.5]
    browser.find_element(By.ID, "from").send_keys(Keys.ARROW_RIGHT * 10)
    wait(browser, "return document.getElementById('loss').layout.xaxis.range[0] === 9.5")
    browser.find_element(By.ID, "to").send_keys(Keys.HOME)
    wait(browser, "return document.getElementById('loss').layout.xaxis.range[1] === 29.5")
    assert browser.find_element(By.ID, "span").text == "batches 10 to 29"
    gates = "return document.getElementById('gates').layout.xaxis.range"
    assert browser.execute_script(gates) == [9.5, 29.5]
    browser.find_element(By.ID, "whole").click()
    wait(browser, "return document.getElementById('loss').layout.xaxis.range[1] === 79.5")
    chart = browser.find_element(By.CSS_SELECTOR, "#loss .nsewdrag")
    mouse = ActionChains(browser).move_to_element_with_offset(chart, -100, 0)
    mouse.click_and_hold().move_by_offset(200, 0).release().perform()
    wait(browser, "return document.getElementById('from').value > 20")
    assert 40 < int(browser.find_element(By.ID, "to").get_attribute("value")) < 60


def test_every_batch_is_drawn_and_hovering_says_its_loss_and_class(browser, made):
    run = made.settings[0].groups[0].runs[0]
    script = "const all = document.getElementById('loss').data; return all.at(-3).y"
    assert browser.execute_script(script) == pytest.approx(run.records.loss.tolist(), rel=1e-6)
    chart = browser.find_element(By.CSS_SELECTOR, "#loss .nsewdrag")
    width = chart.size["width"]
    mouse = ActionChains(browser).move_to_element(chart)
    mouse.move_by_offset(int(width * (14.5 / 80 - 0.5)), 0).perform()
    wait(browser, "return document.querySelector('#loss .hoverlayer').textContent")
    said = browser.find_element(By.CSS_SELECTOR, "#loss .hoverlayer").get_attribute("textContent")
    assert f"{made.evil}, fragment 1" in said
    assert f"good : {run.records.loss[14]:.3f}" in said


def test_names_are_text_wherever_they_stand(browser, made):
    choose(browser, "corpus", "other")
    choose(browser, "metric", "rec")
    browser.find_element(By.CSS_SELECTOR, "#runs .more").click()
    assert browser.find_elements(By.CSS_SELECTOR, "b") == []
    assert made.evil in column(browser, 2, "#classes thead")
    assert "name = " in browser.find_element(By.CSS_SELECTOR, "#runs pre").text


def test_the_keyboard_reaches_everything(browser):
    browser.execute_script("document.activeElement.blur()")
    press(browser, Keys.TAB)
    assert focused(browser).text == "Skip to the leaderboard"
    assert focused(browser).rect["y"] >= 0
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.execute_script(outline) == "solid"
    press(browser, Keys.ENTER)
    press(browser, Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    assert focused(browser).get_attribute("data-sort") == "rank"
    press(browser, Keys.TAB, Keys.ENTER)
    assert column(browser, 2) == ["bad", "c", "d", "e", "good"]
    assert focused(browser).get_attribute("data-sort") == "learner"
    reached = set()
    for _ in range(80):
        press(browser, Keys.TAB)
        reached.add(focused(browser).get_attribute("id"))
    assert {"stream", "from", "to", "whole", "gate", "metric"} <= reached


def test_dark_and_light_are_what_the_reader_prefers_until_they_say_otherwise(browser):
    back = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(back)
    show(browser, scheme="dark")
    wait(browser, "return document.documentElement.dataset.theme === 'dark'")
    assert browser.execute_script(back) != light
    toggle = browser.find_element(By.ID, "theme")
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.click()
    assert browser.execute_script(back) == light


def test_a_phone_scrolls_tables_not_the_page(browser):
    for width in (320, 390):
        show(browser, width, 800, mobile=True)
        browser.refresh()
        wait(browser, "return performance.getEntriesByName('drawn').length > 0")
        assert browser.execute_script("return document.documentElement.scrollWidth") == width
        wait(browser, "return document.querySelector('#switch svg')")
        for chart in browser.find_elements(By.CSS_SELECTOR, ".chart svg"):
            assert chart.rect["x"] + chart.rect["width"] <= width
