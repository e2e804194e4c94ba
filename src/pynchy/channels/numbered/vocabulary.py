"""What people say for numbers, for “and”, and to decline, in some of their languages.

Left out is what is a common word of another language: “um” is one in Portuguese, and a pause in
English. Whoever misses a word can always write digits.
"""

from __future__ import annotations

_CANCEL = """
cancel; skip; dismiss; decline; never mind; nevermind; nvm
abbrechen; abbruch; überspringen; ablehnen; vergiss es
annuler; annule; passer; laisse tomber
cancelar; cancela; omitir; saltar; déjalo
pular; recusar; deixa pra lá
annulla; annullare; salta; lascia perdere; lascia stare
annuleren; annuleer; overslaan; laat maar
anuluj; pomiń; nieważne
avbryt; hoppa över; glöm det; annuller; spring over
iptal; iptal et; vazgeç
отмена; отменить; отмени; пропустить; пропусти; скасувати; пропустити
إلغاء; تخطي; ביטול; בטל; דלג
रद्द; रद्द करें; छोड़ें
取消; 跳过; 跳過; 算了; キャンセル; スキップ; 取り消し; 취소; 건너뛰기
"""

_NUMBERS = """
one two three four five six seven eight nine ten
eins zwei drei vier fünf sechs sieben acht neun zehn
un deux trois quatre cinq six sept huit neuf dix
uno dos tres cuatro cinco seis siete ocho nueve diez
uno due tre quattro cinque sei sette otto nove dieci
uma dois três quatro cinco seis sete oito nove dez
een twee drie vier vijf zes zeven acht negen tien
jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć
bir iki üç dört beş altı yedi sekiz dokuz
один два три четыре пять шесть семь восемь девять десять
واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة
एक दो तीन चार पांच छह सात आठ नौ दस
一 二 三 四 五 六 七 八 九 十
하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉 열
"""

_AND = "and plus und et y e og och en i ve и та و और 和 与 と 그리고"
_OR = "or oder ou o of eller lub veya или або أو या 或 か"
_OPTION = (
    "option options opt number numbers choice nr num nummer numéro número numero auswahl opción "
    "opciones opção opzione optie opcja seçenek вариант номер خيار विकल्प 选项 選項 选择 选 選択 "
    "番 号 번"
)

CANCEL = tuple(word.strip() for line in _CANCEL.split("\n") for word in line.split(";"))
NUMBERS = tuple(
    (word, number) for line in _NUMBERS.split("\n") for number, word in enumerate(line.split(), 1)
)
AND = tuple(_AND.split())
OR = tuple(_OR.split())
OPTION = tuple(_OPTION.split())
